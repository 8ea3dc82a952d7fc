"""Every rule does what its examples say, and rule and fix files obey the published schemas."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
from gpurules.knowledge.loader import knowledge_files, load_knowledge
from gpurules.knowledge.problems import Problems
from gpurules.knowledge.publish import PUBLISHED, json_schema
from gpurules.knowledge.yamlnodes import load
from gpurules.reasoning.examples import run_examples
from gpurules.schemas import schema_text

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
KNOWLEDGE = load_knowledge()
FILES = knowledge_files(None)


@pytest.mark.parametrize("rule_id", sorted(KNOWLEDGE.rules))
def test_examples(rule_id: str) -> None:
    results = run_examples(KNOWLEDGE, [rule_id])
    assert len(results) >= 2
    assert [(r.example, r.message) for r in results if not r.ok] == []


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_the_published_schema_is_that_of_the_models(name: str) -> None:
    # After a change of the models: python -m gpurules.knowledge.publish docs/schema
    assert (SCHEMAS / name).read_text(encoding="utf-8") == schema_text(json_schema(name))
    jsonschema.Draft202012Validator.check_schema(json_schema(name))


@pytest.mark.parametrize(("prefix", "name"), [("rules/", "rule-1.json"), ("fixes/", "fix-1.json")])
def test_files_obey_the_schema(prefix: str, name: str) -> None:
    validator = jsonschema.Draft202012Validator(json_schema(name))
    for file, path in FILES.items():
        if file.startswith(prefix):
            root = load(path, Problems(), file)
            assert root is not None
            assert [e.message for e in validator.iter_errors(root.plain())] == [], file


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rule-1.json", {"identity": "x"}, "Additional properties are not allowed ('identity' was unexpected)"),
        ("rule-1.json", {"severity": "grave"}, "'grave' is not one of ['error', 'warning', 'info']"),
        (
            "fix-1.json",
            {"kind": "remedy"},
            "'remedy' is not one of ['cure', 'mitigation', 'prevention', 'check', 'advice']",
        ),
        ("fix-1.json", {"effects": [{}]}, "{} is not valid under any of the given schemas"),
        ("fix-1.json", {"causes": []}, "[] should be non-empty"),
    ],
)
def test_the_schema_finds_faults(name: str, content: dict[str, object], message: str) -> None:
    found = [e.message for e in jsonschema.Draft202012Validator(json_schema(name)).iter_errors(content)]
    assert message in found


def test_a_wrong_example_is_told(tmp_path: Path) -> None:
    text = FILES["rules/gpu/gpu-listed.yaml"].read_text(encoding="utf-8")
    head, _, _ = text.partition("examples:")
    path = tmp_path / "rules" / "gpu" / "gpu-listed.yaml"
    path.parent.mkdir(parents=True)
    listed = "{facts: [{gpu: {index: 0, name: Tesla T4}}]"
    unlisted = "{facts: [{os: {family: linux}}]"
    path.write_text(
        f"{head}examples:\n  fires: [{unlisted}}}, {listed}, derives: {{gpu_listed: {{present: false}}}}}}]\n"
        f"  silent: [{listed}}}]\n  unknown: [{listed}, needs: gpu}}, {unlisted}, needs: driver}}]\n",
        encoding="utf-8",
    )
    results = run_examples(load_knowledge(tmp_path, use_cache=False), ["gpu-listed"])
    assert [(r.example, r.ok, r.message) for r in results] == [
        ("fires 1", False, "does not fire"),
        ("fires 2", False, "does not derive gpu_listed {'present': False}"),
        ("silent 1", False, "fires"),
        ("unknown 1", False, "fires"),
        ("unknown 2", False, "lacks gpu, not driver"),
    ]
