"""The rules of the house, read from the source: who may import whom, and that knowledge stays in the YAML files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
PARTS = [path.parent for path in CHECKOUT.glob("*/__init__.py")]
MODULES = sorted([*CHECKOUT.glob("*.py"), *(path for folder in PARTS for path in folder.rglob("*.py"))])
# Which parts a part may import, besides itself and the leaves. What is not listed is imported by nobody.
LEAVES = {"facts", "errors", "messages", "schemas"}
MAY_IMPORT: dict[str, set[str]] = {
    "facts": set(),
    "errors": {"messages"},
    "messages": set(),
    "schemas": set(),
    "engine": set(),
    "probes": set(),
    "knowledge": {"engine"},
    "report": set(),
    "reasoning": {"engine", "knowledge", "report", "__init__"},
    "applying": {"report"},
    "gathering": {"knowledge", "probes", "reasoning", "report"},
    "validating": {"__init__", "knowledge", "probes", "reasoning", "report"},
    "pipeline": {"applying", "gathering", "knowledge", "probes", "reasoning", "report", "validating"},
    "asking": {"reasoning", "report"},
    "api": {"pipeline", "report"},
    "commands": {"asking", "pipeline", "report"},
    "cli": {"commands"},
    "__init__": {"api", "knowledge", "report"},
    "__main__": {"cli"},
}
# Product and target names in code, outside docstrings, with the reason why each stands there.
NAMES_IN_CODE = {
    ("knowledge/phrases.py", "RTX"): "makes a bare model number whole before it is looked up in the catalog",
    ("knowledge/phrases.py", "GTX"): "the same",
    ("probes/readers/rocm.py", "Radeon"): "part of the layout that rocm-smi prints",
    ("probes/readers/rocm.py", "Instinct"): "the same",
}
PRODUCT = re.compile(
    r"\b(?:RTX|GTX|Tesla|GeForce|Quadro|Radeon|Instinct|Jetson|Blackwell|Hopper|Ampere|Turing|Volta|Pascal|Maxwell|Kepler"
    r"|[HABVPKLT]\d{2,3}|sm_\d+[af]?|compute_\d+|gfx\d+\w*|cu\d{2,3}|rocm\d[\d.]*)\b"
)


def name(path: Path) -> str:
    return path.relative_to(CHECKOUT).as_posix()


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def part(path: Path) -> str:
    """The part of the house that a module belongs to."""
    return path.relative_to(CHECKOUT).with_suffix("").parts[0]


def run(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below but those that only type checkers see: a type's name ties no part to another at run time."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        yield child
        yield from run(child)


def imported(path: Path, nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """(part or top-level package, "ours" or "other") of every import among the nodes."""
    package = path.relative_to(CHECKOUT).parent.parts
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first, *rest = alias.name.split(".")
                yield ((rest or ["__init__"])[0], "ours") if first == "gpurules" else (first, "other")
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".") if node.module else []
            if node.level == 0 and module[0] != "gpurules":
                yield module[0], "other"
                continue
            above = package[: len(package) - node.level + 1] if node.level else ()
            inside = [*above, *(module if node.level else module[1:])]
            # `from . import x` at the root names parts (or what the package itself defines)
            for alias in node.names:
                target = (inside or [alias.name])[0]
                yield ("__init__" if target.startswith("__") else target), "ours"


def docstrings(module: ast.Module) -> set[ast.AST]:
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found: set[ast.AST] = set()
    for node in ast.walk(module):
        if isinstance(node, holders) and node.body and isinstance(node.body[0], ast.Expr):
            found.add(node.body[0].value)
    return found


def product_names(path: Path) -> set[tuple[str, str]]:
    module = tree(path)
    spared = docstrings(module)
    return {
        (name(path), found)
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in spared
        for found in PRODUCT.findall(node.value)
    }


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_says_what_may_live_in_it(path: Path) -> None:
    docstring = ast.get_docstring(tree(path)) or ""
    assert re.search(r"may live here", docstring, re.IGNORECASE)


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_part_imports_only_what_it_may(path: Path) -> None:
    ours = {target for target, kind in imported(path, run(tree(path))) if kind == "ours"}
    leaves = set() if part(path) in LEAVES else LEAVES
    assert ours - {part(path)} - leaves - MAY_IMPORT[part(path)] == set()


def test_the_command_line_imports_only_click_before_a_command_runs() -> None:
    for path in (CHECKOUT / "cli.py", *(CHECKOUT / "commands").glob("*.py")):
        at_start = {target for target, kind in imported(path, tree(path).body) if kind == "other"}
        assert at_start & {"pydantic", "yaml", "rich", "torch", "psutil", "pynvml"} == set()
        ours = {target for target, kind in imported(path, tree(path).body) if kind == "ours"}
        assert ours <= {"commands", "messages", "errors"}


def test_nothing_imports_torch_or_an_engine_that_is_an_option() -> None:
    """torch runs in child processes of the target interpreter only; durable-rules in its worker only."""
    users: dict[str, set[str]] = {"torch": set(), "durable": set(), "clips": set(), "requests": set(), "urllib3": set()}
    for path in MODULES:
        for target, kind in imported(path, run(tree(path))):
            if kind == "other" and target in users:
                users[target].add(name(path))
    assert users["durable"] <= {"engine/durable.py", "engine/durable_worker.py"}
    assert {key: found for key, found in users.items() if found and key != "durable"} == {}


def test_product_names_stand_in_the_knowledge_not_in_the_code() -> None:
    found = set().union(*(product_names(path) for path in MODULES))
    assert found == set(NAMES_IN_CODE)


# Parts whose words users read; those that read files and texts of others hold the words of these.
SPOKEN = ("api", "applying", "asking", "cli", "commands", "gathering", "pipeline", "reasoning", "report", "validating")
SENTENCE = re.compile(r"[A-Za-z]{2,} [a-z]{2,} [a-z]{2,}")


def sentences(path: Path) -> set[tuple[str, str]]:
    """Texts of several words in code, but for docstrings and the descriptions of published schemas."""
    module = tree(path)
    spared = docstrings(module)
    for node in ast.walk(module):
        if isinstance(node, ast.keyword) and node.arg == "description":
            spared |= set(ast.walk(node.value))
    constants = (node for node in ast.walk(module) if isinstance(node, ast.Constant) and node not in spared)
    return {(name(path), c.value) for c in constants if isinstance(c.value, str) and SENTENCE.search(c.value)}


def test_what_users_read_stands_in_the_catalog_not_in_the_code() -> None:
    found = set().union(*(sentences(path) for path in MODULES if part(path) in SPOKEN))
    assert found == set()


def test_no_path_of_the_machine_that_wrote_it_stands_in_a_file() -> None:
    texts = [*MODULES, *CHECKOUT.glob("*.md"), CHECKOUT / ".ci" / "run", CHECKOUT / "pyproject.toml"]
    texts += [*CHECKOUT.glob("scripts/*"), *CHECKOUT.glob("docs/**/*.md")]
    found = {name(p): m.group() for p in texts if (m := re.search(r"/root/|/work/", p.read_text(encoding="utf-8")))}
    assert found == {}
