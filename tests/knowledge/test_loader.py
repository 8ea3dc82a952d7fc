"""Loading the knowledge: overlays, versions, every fault with its place, and a cache that never answers for other files."""

from __future__ import annotations

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gpurules
import pytest
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


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
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


def marked(cache: Path) -> None:
    """Changes the version in every cached document, so that an answer from the cache shows."""
    for path in cache.glob("knowledge-*.json"):
        document = json.loads(path.read_bytes())
        path.write_text(json.dumps({**document, "version": "from the cache"}), encoding="utf-8")


def test_the_cache_answers_for_the_same_content_only(tmp_path: Path, own_cache: Path) -> None:
    first = overlay(tmp_path / "a")
    fresh = load_knowledge(first)
    (stored,) = own_cache.iterdir()
    assert stored.stat().st_mode & 0o077 == 0
    assert own_cache.stat().st_mode & 0o077 == 0
    marked(own_cache)
    assert load_knowledge(first) is fresh
    same = load_knowledge(shutil.copytree(first, tmp_path / "b"))
    assert same.version == "from the cache"
    assert contents(same) == contents(fresh)
    # The same length, in place, in the same process.
    overlay(tmp_path / "b", title="An Overlay")
    changed = load_knowledge(tmp_path / "b")
    assert changed.version not in (fresh.version, "from the cache")
    assert changed.rules["own-rule"]["title"]["en"] == "An Overlay"
    assert len(list(own_cache.iterdir())) == 2


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


@pytest.mark.parametrize("spoil", ["half", "shape"])
def test_a_spoilt_cache_is_replaced(tmp_path: Path, own_cache: Path, spoil: str) -> None:
    fresh = load_knowledge(overlay(tmp_path / "a"))
    (stored,) = own_cache.iterdir()
    whole = stored.read_bytes()
    half, shape = whole[: len(whole) // 2], json.dumps({**json.loads(whole), "ir": [["r"]]}).encode()
    stored.write_bytes(half if spoil == "half" else shape)
    found = load_knowledge(shutil.copytree(tmp_path / "a", tmp_path / "b"))
    assert found.version == fresh.version
    assert stored.read_bytes() == whole
    assert list(own_cache.iterdir()) == [stored]


def test_a_cache_that_cannot_be_used_costs_time_only(tmp_path: Path, own_cache: Path) -> None:
    own_cache.parent.write_text("a file where the folder should be", encoding="utf-8")
    fresh = load_knowledge(overlay(tmp_path / "a"))
    own_cache.parent.unlink()
    marker = put(own_cache, "marker.txt", "")
    load_knowledge(shutil.copytree(tmp_path / "a", tmp_path / "b"))
    (stored,) = own_cache.glob("*.json")
    stored.unlink()
    stored.mkdir()
    assert load_knowledge(shutil.copytree(tmp_path / "a", tmp_path / "c")).version == fresh.version
    assert sorted(own_cache.iterdir()) == [stored, marker]


def test_old_documents_go(tmp_path: Path, own_cache: Path) -> None:
    own_cache.mkdir(parents=True)
    for number in range(6):
        put(own_cache, f"knowledge-{number}.json", "{}")
    put(own_cache, "knowledge-recent.tmp", "{")
    put(own_cache, "other.txt", "not ours")
    load_knowledge(overlay(tmp_path / "a"))
    names = sorted(path.name for path in own_cache.iterdir())
    assert len([name for name in names if name.endswith(".json")]) == 4
    assert [name for name in names if not name.endswith(".json")] == ["knowledge-recent.tmp", "other.txt"]


def test_several_writers_at_once(tmp_path: Path, own_cache: Path) -> None:
    folders = [overlay(tmp_path / name) for name in "ab"]
    with ThreadPoolExecutor(2) as pool:
        versions = {knowledge.version for knowledge in pool.map(load_knowledge, folders)}
    assert len(versions) == 1
    (stored,) = own_cache.iterdir()
    assert json.loads(stored.read_bytes())["version"] in versions


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
    assert [str(p) for p in caught.value.problems if p.file != "symptoms.yaml"] == [
        "causes.yaml:1: Bad Name: an id is lower case, its words parted by underscores",
        "causes.yaml:3: Bad Name.severity: Input should be 'error', 'warning' or 'info'",
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
        "rules/gpu/shape.yaml:3: since: Input should be a valid string",
        'rules/gpu/shape.yaml:5: whenn: unknown field; did you mean "when"?',
        "rules/gpu/shape.yaml:7: conclude[0].cause: String should match pattern '^[a-z0-9]+(?:[-_][a-z0-9]+)*$'",
        "rules/gpu/shape.yaml:7: conclude[0].evidence: Input should be 'decisive', 'strong', 'weak', 'against' or 'excludes'",
        "rules/gpu/shape.yaml:10: sources[0].retrieved: String should match pattern '^20\\d\\d-\\d\\d-\\d\\d$'",
        "rules/gpu/shape.yaml:10: sources[0].url: String should match pattern '^https://\\S+$'",
        "rules/gpu/shape.yaml:11: examples.fires[0].facts[0].gpu.index: Input should be a valid string or:"
        " Input should be a valid integer or: Input should be a valid boolean",
        "rules/gpu/shape.yaml:11: examples.silent: List should have at least 1 item after validation, not 0",
        "rules/gpu/twice.yaml:15: area: given twice",
        "rules/gpu/yaml.yaml:3: not YAML: did not find expected node content",
        "rules/misplaced.yaml: must stand at rules/AREA/ID.yaml",
    ]


def test_the_same_id_twice(tmp_path: Path) -> None:
    put(tmp_path, "rules/torch/gpu-listed.yaml", RULE.format(id="gpu-listed", title="x"))
    with pytest.raises(KnowledgeError) as caught:
        load_knowledge(tmp_path)
    assert [str(p) for p in caught.value.problems] == [
        "rules/torch/gpu-listed.yaml:1: id: already used by rules/gpu/gpu-listed.yaml"
    ]


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError) as caught:
        load_knowledge(tmp_path / "none")
    assert str(caught.value) == f"{tmp_path / 'none'}: is not a folder"
    (tmp_path / "own/rules/gpu").mkdir(parents=True)
    (tmp_path / "own/rules/gpu/gone.yaml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(KnowledgeError) as caught:
        load_knowledge(tmp_path / "own")
    assert str(caught.value) == "rules/gpu/gone.yaml: cannot be read: No such file or directory"
