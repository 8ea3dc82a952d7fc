"""Reader of torch asked by hand: a prompt, a notebook cell or `python -c`, and the answer on the following lines.

May live here: which expressions are known and what an answer must look like. Must not: collect_env's labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ...facts import Fact
from .common import FactList, vendor_of
from .emit import cuda_release
from .line import Line
from .signatures import to_sm

READER = "torch_shell"

_EXPRESSION = re.compile(
    r"torch\.(?:__version__|version\.(?:cuda|hip)|cuda\.(?:is_available|device_count|get_arch_list)\(\)"
    r"|cuda\.get_device_(?:name|capability)\((?:device=)?(?P<index>[0-9]{0,2})\)|xpu\.is_available\(\)"
    r"|backends\.mps\.is_available\(\))"
)
_CODE = re.compile(
    r"(?:[a-zA-Z0-9_@:~./()-]{0,60}[$#%] |In \[[0-9]{1,4}\]: )?"
    r"(?P<code>(?:python|uv |\.?/)[^\n]{0,80}-c .*|(?:import torch; ?)?(?:print\()?torch\..*)$"
)
_OUT = re.compile(r"Out\[[0-9]{1,4}\]: ")
_LABELLED = re.compile(
    r"[ \t*-]{0,6}(?P<label>[A-Za-z][A-Za-z_.() ]{3,40}?)[ \t]{0,4}[:=][ \t]{0,8}(?P<value>[^ \t].{0,200})$"
)
_VERSION = re.compile(r"['\"]?(?P<value>[0-9]{1,2}\.[0-9]{1,2}(?:\.[0-9]{1,3})?[0-9A-Za-z.+-]{0,40})['\"]?$", re.ASCII)
_NAME = re.compile(r"['\"]?(?P<value>[A-Z][^'\"\n]{2,80})['\"]?$")
_CAPABILITY = re.compile(r"\((?P<major>[0-9]{1,2}), ?(?P<minor>[0-9])\)$", re.ASCII)
_TARGETS = re.compile(r"\[(?P<value>(?:'(?:sm|compute)_[0-9]{2,3}[af]?'(?:, )?)+)\]$", re.ASCII)

_LABELS = {
    "torch version": "torch.__version__",
    "torch": "torch.__version__",
    "cuda available": "torch.cuda.is_available()",
    "cuda is available": "torch.cuda.is_available()",
    "torch cuda available": "torch.cuda.is_available()",
    "torch cuda version": "torch.version.cuda",
    "torch cuda": "torch.version.cuda",
    "device count": "torch.cuda.device_count()",
}


def read(lines: Sequence[Line], source: str) -> list[Fact]:
    """Facts of every question to torch whose answer follows."""
    out = FactList(source, READER)
    for position, line in enumerate(lines):
        text = line.text
        if "torch" not in text and "vailable" not in text and "ount" not in text:
            continue
        if not _labelled(line, out) and (match := _CODE.match(text)):
            _answers(match.group("code"), lines[position + 1 : position + 9], out)
    return out.facts


def _labelled(line: Line, out: FactList) -> bool:
    """`CUDA available: False`, and `torch.version.cuda = 12.4` as scripts print it."""
    match = _LABELLED.match(line.text)
    if match is None:
        return False
    label = match.group("label").strip()
    expression = _LABELS.get(label.lower(), label)
    known = _EXPRESSION.match(expression)
    if known is None or known.end() != len(expression):
        return False
    return _answer(known, match.group("value").strip(), line, out)


def _answers(code: str, following: Sequence[Line], out: FactList) -> None:
    """Pair the expressions of a command with the lines printed after it; nothing where they do not fit."""
    questions = list(_EXPRESSION.finditer(code))
    answers = [line for line in following if line.text.strip()]
    prints = code.count("print(")
    if not questions or not answers:
        return
    if prints == 1 and len(questions) > 1:
        words = answers[0].text.split()
        if len(words) == len(questions):
            for question, word in zip(questions, words, strict=True):
                _answer(question, word, answers[0], out)
        return
    alone = len(questions) == 1 and questions[0].end() == len(code.rstrip())
    if not (prints == len(questions) or (prints == 0 and alone)):
        return
    for question, line in zip(questions, answers, strict=False):
        if not _answer(question, _OUT.sub("", line.text).strip(), line, out):
            return


def _answer(question: re.Match[str], value: str, line: Line, out: FactList) -> bool:
    """Emit what an answer says; False where it is no answer to this question."""
    expression = question.group()
    index = int(question.group("index") or 0)
    for start, handler in _HANDLERS:
        if expression.startswith(start):
            return handler(value, index, line, out)
    return False


def _boolean(field: str) -> Callable[[str, int, Line, FactList], bool]:
    def handle(value: str, _index: int, line: Line, out: FactList) -> bool:
        if value not in ("True", "False"):
            return False
        out.add("torch", {field: value == "True"}, line)
        return True

    return handle


def _version(field: str, built: str | None = None) -> Callable[[str, int, Line, FactList], bool]:
    def handle(value: str, _index: int, line: Line, out: FactList) -> bool:
        if value == "None" and built:
            out.add("torch", {built: False}, line)
            return True
        match = _VERSION.match(value)
        if match:
            version = match.group("value")
            fields = {field: cuda_release(version) if field == "cuda" else version}
            out.add("torch", {**fields, **({built: True} if built else {})}, line)
        return match is not None

    return handle


def _count(value: str, _index: int, line: Line, out: FactList) -> bool:
    if not (value.isascii() and value.isdigit() and len(value) < 4):
        return False
    out.add("torch", {"device_count": int(value)}, line)
    return True


def _device_name(value: str, index: int, line: Line, out: FactList) -> bool:
    match = _NAME.match(value)
    if match is None or vendor_of(match.group("value")) is None:
        return False
    name = match.group("value")
    out.add("gpu", {"index": index, "name": name, "vendor": vendor_of(name)}, line)
    return True


def _capability(value: str, index: int, line: Line, out: FactList) -> bool:
    match = _CAPABILITY.match(value)
    if match is None:
        return False
    sm = int(match.group("major")) * 10 + int(match.group("minor"))
    out.add("gpu", {"index": index, "sm": sm}, line)
    return True


def _arch_list(value: str, _index: int, line: Line, out: FactList) -> bool:
    match = _TARGETS.match(value)
    if match is None:
        return False
    targets = match.group("value").replace("'", "").replace(",", "").split()
    out.add("arch_list", {"text": " ".join(targets)}, line)
    out.add("coverage", {"domain": "arch_list", "complete": True}, line)
    for target in targets:
        code = "ptx" if target.startswith("compute_") else "sass"
        out.add("torch_target", {"sm": to_sm(target), "code": code}, line)
    return True


_HANDLERS: tuple[tuple[str, Callable[[str, int, Line, FactList], bool]], ...] = (
    ("torch.__version__", _version("version")),
    ("torch.version.cuda", _version("cuda", "cuda_built")),
    ("torch.version.hip", _version("hip", "hip_built")),
    ("torch.cuda.is_available", _boolean("cuda_available")),
    ("torch.xpu.is_available", _boolean("xpu_available")),
    ("torch.backends.mps.is_available", _boolean("mps_available")),
    ("torch.cuda.device_count", _count),
    ("torch.cuda.get_device_name", _device_name),
    ("torch.cuda.get_device_capability", _capability),
    ("torch.cuda.get_arch_list", _arch_list),
)
