"""Loading the knowledge: overlays, versions, every fault with its place, a cache that answers for its files only."""

from __future__ import annotations

import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import gpurules
import pytest
from gpurules.knowledge import build, loader
from gpurules.knowledge.loader import Knowledge, KnowledgeError, knowledge_files, load_knowledge

SHIPPED = Path(gpurules.__file__).parent / "knowledge"
RULE = """\
id: {id}
title: {{en: "{title}", zh: "测试"}}
since: 0.1.0
area: gpu
when:
  g: {{gpu: {{name.product: Tesla T4}}}}
conclude:
  - {{fact: {{gpu_listed: {{present: true}}}}}}
because: {{en: "a GPU is listed", zh: "已列出 GPU"}}
sources:
  - {{url: "https://example.org/", title: "An example", retrieved: 2026-11-30}}
examples:
  fires: [{{facts: [{{gpu: {{index: 0, name: Tesla T4}}}}]}}]
  silent: [{{facts: [{{gpu: {{index: 0, name: A10}}}}]}}]
"""


@pytest.fixture(name="shipped", scope="module")
def shipped_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped folder as it is now: these tests compare several loads of it."""
    copy: Path = shutil.copytree(SHIPPED, tmp_path_factory.mktemp("shipped") / "knowledge")
    return copy


def read_from(folder: Path, patch: pytest.MonkeyPatch) -> None:
    for module in (build, loader):
        patch.setattr(module, "FOLDER", folder)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shipped: Path) -> Path:
    folder = tmp_path / "cache"
    read_from(shipped, monkeypatch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.delenv("GPURULES_NO_CACHE", raising=False)
    return folder / "gpurules"


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def overlay(folder: Path, title: str = "An overlay") -> Path:
    put(folder, "rules/gpu/own-rule.yaml", RULE.format(id="own-rule", title=title))
    return folder


def test_the_shipped_knowledge() -> None:
    knowledge = load_knowledge()
    assert re.fullmatch(r"20\d\d-\d\d-\d\d\+[0-9a-f]{8}", knowledge.version)
    assert knowledge.version.startswith(max(knowledge.retrieved.values()))
    assert load_knowledge() is knowledge
    files = knowledge_files(None)
    assert sorted(r["file"] for r in knowledge.rules.values()) == [n for n in files if n.startswith("rules/")]
    assert sorted(f["file"] for f in knowledge.fixes.values()) == [n for n in files if n.startswith("fixes/")]
    assert len(knowledge.static) == len(knowledge.static_sources)
    assert {rule.group.partition("/")[0] for rule in knowledge.ir} == {*knowledge.rules, "fix", "symptom"}


def test_an_overlay_adds_and_replaces_by_name(tmp_path: Path) -> None:
    plain = load_knowledge()
    folder = overlay(tmp_path / "own")
    put(folder, "rules/gpu/gpu-listed.yaml", RULE.format(id="gpu-listed", title="Instead"))
    catalog = (SHIPPED / "facts" / "driver_branches.yaml").read_text(encoding="utf-8")
    put(folder, "facts/driver_branches.yaml", catalog.replace("branch: 570,", "branch: 571,"))
    put(folder, ".git/rules/gpu/ignored.yaml", "broken: [")
    put(folder, "README.md", "no knowledge")
    knowledge = load_knowledge(folder)
    assert set(knowledge.rules) == {*plain.rules, "own-rule"}
    assert knowledge.rules["own-rule"]["title"] == {"en": "An overlay", "zh": "测试"}
    assert knowledge.rules["gpu-listed"]["title"]["en"] == "Instead"
    branches = {int(fields["branch"]) for kind, fields in knowledge.static if kind == "driver_branch"}
    before = {int(fields["branch"]) for kind, fields in plain.static if kind == "driver_branch"}
    assert (branches - before, before - branches) == ({571}, {570})
    assert len(knowledge.static) == len(plain.static)
    assert knowledge.version.partition("+")[0] == plain.version.partition("+")[0]
    assert knowledge.version != plain.version
    assert load_knowledge() is plain


@dataclass(frozen=True)
class Stored:
    """A folder that was loaded once, and the document that this left in the cache."""

    folder: Path
    knowledge: Knowledge
    name: str
    content: bytes

    def into(self, cache: Path, content: bytes | None = None) -> Path:
        cache.mkdir(parents=True)
        path = cache / self.name
        path.write_bytes(self.content if content is None else content)
        return path

    def copy(self, path: Path) -> Path:
        return shutil.copytree(self.folder, path)


@pytest.fixture(name="stored", scope="module")
def stored_once(tmp_path_factory: pytest.TempPathFactory, shipped: Path) -> Stored:
    base = tmp_path_factory.mktemp("stored")
    with pytest.MonkeyPatch.context() as patch:
        read_from(shipped, patch)
        patch.setenv("XDG_CACHE_HOME", str(base / "cache"))
        patch.delenv("GPURULES_NO_CACHE", raising=False)
        knowledge = load_knowledge(overlay(base / "own"))
    cache = base / "cache" / "gpurules"
    (path,) = cache.iterdir()
    assert path.stat().st_mode & 0o077 == 0
    assert cache.stat().st_mode & 0o077 == 0
    return Stored(base / "own", knowledge, path.name, path.read_bytes())


def contents(knowledge: Knowledge) -> tuple[object, ...]:
    return (
        knowledge.vocabulary.types,
        knowledge.rules,
        knowledge.fixes,
        knowledge.causes,
        knowledge.symptoms,
        knowledge.questions,
        knowledge.signatures,
        knowledge.ir,
        knowledge.static,
        knowledge.static_sources,
        knowledge.retrieved,
        knowledge.phrases.kinds,
    )


def test_the_cache_answers_for_the_same_content_only(tmp_path: Path, own_cache: Path, stored: Stored) -> None:
    stored.into(own_cache, json.dumps({**json.loads(stored.content), "version": "from the cache"}).encode())
    folder = stored.copy(tmp_path / "a")
    same = load_knowledge(folder)
    assert same.version == "from the cache"
    assert contents(same) == contents(stored.knowledge)
    assert load_knowledge(folder) is same
    # The same length, in place, in the same process.
    overlay(folder, title="An Overlay")
    changed = load_knowledge(folder)
    assert changed.version not in (stored.knowledge.version, "from the cache")
    assert changed.rules["own-rule"]["title"]["en"] == "An Overlay"
    assert len(list(own_cache.iterdir())) == 2


@pytest.mark.parametrize("spoil", ["half", "shape"])
def test_a_spoilt_cache_is_replaced(tmp_path: Path, own_cache: Path, stored: Stored, spoil: str) -> None:
    whole = stored.content
    shape = json.dumps({**json.loads(whole), "ir": [["r"]]}).encode()
    path = stored.into(own_cache, whole[: len(whole) // 2] if spoil == "half" else shape)
    found = load_knowledge(stored.copy(tmp_path / "a"))
    assert contents(found) == contents(stored.knowledge)
    assert path.read_bytes() == whole
    assert list(own_cache.iterdir()) == [path]


def test_a_folder_that_cannot_be_written_costs_time_only(tmp_path: Path, own_cache: Path, stored: Stored) -> None:
    own_cache.parent.write_text("a file where the folder should be", encoding="utf-8")
    assert load_knowledge(stored.copy(tmp_path / "a")).version == stored.knowledge.version


def test_a_document_that_cannot_be_replaced_leaves_nothing_behind(
    tmp_path: Path, own_cache: Path, stored: Stored
) -> None:
    (own_cache / stored.name).mkdir(parents=True)
    assert load_knowledge(stored.copy(tmp_path / "a")).version == stored.knowledge.version
    assert [path.name for path in own_cache.iterdir()] == [stored.name]


def test_several_writers_at_once_and_old_documents(tmp_path: Path, own_cache: Path, stored: Stored) -> None:
    for number in range(6):
        put(own_cache, f"knowledge-{number}.json", "{}")
    put(own_cache, "knowledge-being-written.tmp", "{")
    put(own_cache, "other.txt", "not ours")
    abandoned = put(own_cache, "knowledge-abandoned.tmp", "{")
    os.utime(abandoned, (0, 0))
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(load_knowledge, [stored.copy(tmp_path / name) for name in "ab"]))
    assert {knowledge.version for knowledge in found} == {stored.knowledge.version}
    assert (own_cache / stored.name).read_bytes() == stored.content
    names = {path.name for path in own_cache.iterdir()}
    assert {name for name in names if not name.endswith(".json")} == {"knowledge-being-written.tmp", "other.txt"}
    assert len({name for name in names if name.endswith(".json")}) in (3, 4)


def test_every_fault_with_file_line_and_field(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    put(
        folder,
        "rules/gpu/shape.yaml",
        "id: shape\ntitle: {en: A title}\nsince: 1\narea: gpu\nwhenn: {}\nconclude:\n"
        "  - {cause: a cause, evidence: certain}\nbecause: {en: x, zh: y}\nsources:\n"
        '  - {url: "http://x.org", title: X, retrieved: lately}\n'
        "examples: {fires: [{facts: [{gpu: {index: [1]}}]}], silent: []}\n",
    )
    text = RULE.format(id="meaning", title="x")
    put(folder, "rules/gpu/meaning.yaml", text.replace("name.product:", "nmae:").replace("gpu_listed", "gpu_lsited"))
    put(folder, "rules/gpu/other-name.yaml", RULE.format(id="own-rule", title="x"))
    put(folder, "rules/torch/gpu-listed.yaml", RULE.format(id="gpu-listed", title="x"))
    put(folder, "rules/gpu/yaml.yaml", "id: yaml\ntitle: {en: [\n")
    put(folder, "rules/gpu/twice.yaml", RULE.format(id="twice", title="x") + "area: gpu\n")
    put(folder, "rules/misplaced.yaml", "id: misplaced\n")
    put(folder, "rules/gpu/ending.yml", "id: ending\n")
    put(folder, "fixes/gpu/deep.yaml", "id: deep\n")
    put(folder, "symptom.yaml", "x: 1\n")
    put(folder, "fact/gpus.yaml", "x: 1\n")
    put(folder, "facts/gpu.yaml", "x: 1\n")
    put(folder, "causes.yaml", "Bad Name:\n  title: {en: x, zh: 甲}\n  severity: grave\n")
    put(folder, "questions.yaml", "- a\n- b\n")
    with pytest.raises(KnowledgeError) as caught:
        load_knowledge(folder)
    assert [str(p) for p in caught.value.problems] == [
        "causes.yaml:1: Bad Name: an id is lower case, its words parted by underscores",
        "causes.yaml:3: Bad Name.severity: must be one of error, warning, info",
        'fact/gpus.yaml: nothing reads the folder "fact"; did you mean "facts"?',
        'facts/gpu.yaml: there is no catalog of that name; did you mean "gpus.yaml"?',
        "fixes/gpu/deep.yaml: must stand at fixes/NAME.yaml",
        "questions.yaml:1: must map ids to entries",
        "rules/gpu/ending.yml: must be called .yaml",
        'rules/gpu/meaning.yaml:6: when.g.gpu.nmae: unknown field "nmae" of gpu; did you mean "name"?',
        'rules/gpu/meaning.yaml:8: conclude[0].fact.gpu_lsited: "gpu_lsited" is not a derived type;'
        ' did you mean "gpu_listed"?',
        'rules/gpu/other-name.yaml:1: id: must be the file\'s name, "other-name"',
        "rules/gpu/shape.yaml:1: when: is missing",
        "rules/gpu/shape.yaml:2: title.zh: is missing",
        "rules/gpu/shape.yaml:3: since: must be text",
        'rules/gpu/shape.yaml:5: whenn: unknown field; did you mean "when"?',
        "rules/gpu/shape.yaml:7: conclude[0].cause: must match ^[a-z0-9]+(?:[-_][a-z0-9]+)*$",
        "rules/gpu/shape.yaml:7: conclude[0].evidence: must be one of decisive, strong, weak, against, excludes",
        "rules/gpu/shape.yaml:10: sources[0].retrieved: must match ^20\\d\\d-\\d\\d-\\d\\d$",
        "rules/gpu/shape.yaml:10: sources[0].url: must match ^https://\\S+$",
        "rules/gpu/shape.yaml:11: examples.fires[0].facts[0].gpu.index:"
        " must be text or: must be a whole number or: must be true or false",
        "rules/gpu/shape.yaml:11: examples.silent: must have at least 1, not 0",
        "rules/gpu/twice.yaml:15: area: given twice",
        "rules/gpu/yaml.yaml:3: not YAML: a value is missing",
        "rules/misplaced.yaml: must stand at rules/AREA/ID.yaml",
        "rules/torch/gpu-listed.yaml:1: id: already used by rules/gpu/gpu-listed.yaml",
        'symptom.yaml: nothing reads this file; did you mean "symptoms.yaml"?',
    ]


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError) as caught:
        load_knowledge(tmp_path / "none")
    assert str(caught.value) == f"{tmp_path / 'none'}: is not a folder"
    (tmp_path / "own/rules/gpu").mkdir(parents=True)
    (tmp_path / "own/rules/gpu/gone.yaml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(KnowledgeError) as caught:
        load_knowledge(tmp_path / "own")
    assert str(caught.value) == "rules/gpu/gone.yaml: cannot be read: no such file or directory"


def test_files_without_which_nothing_can_be_read(tmp_path: Path) -> None:
    vocabulary = (SHIPPED / "vocabulary.yaml").read_text(encoding="utf-8")
    put(tmp_path, "vocabulary.yaml", vocabulary.replace("  board:", "  bored:").replace("cudnn: {type", "cuddn: {type"))
    put(tmp_path, "rules/gpu/any.yaml", "id: any\n")
    with pytest.raises(KnowledgeError) as caught:
        load_knowledge(tmp_path)
    assert str(caught.value).splitlines() == [
        "vocabulary.yaml: board: is missing: the rest of the knowledge speaks of it",
        "vocabulary.yaml: torch.cudnn: is missing: the rest of the knowledge speaks of it",
        "vocabulary.yaml: torch_build.cudnn: is missing: the rest of the knowledge speaks of it",
    ]


def test_tables_that_hold_nothing(tmp_path: Path) -> None:
    for name in ("aliases.yaml", "questions.yaml", "facts/phrases.yaml"):
        put(tmp_path, name, "")
    put(tmp_path, "messages.yaml", "x: 1\n")
    with pytest.raises(KnowledgeError) as caught:
        load_knowledge(tmp_path)
    assert [str(p) for p in caught.value.problems] == [
        "aliases.yaml: aliases: is missing",
        "facts/phrases.yaml: rows: must be a list",
        "messages.yaml: belongs to the program and cannot be replaced",
        "questions.yaml: must map ids to entries",
    ]
