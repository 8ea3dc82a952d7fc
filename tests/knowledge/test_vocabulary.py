"""The vocabulary: values that fields take, how facts are lowered, and faults of its file."""

from __future__ import annotations

from pathlib import Path

import gpurules
import pytest
from gpurules.facts import Fact, Provenance, Scalar
from gpurules.knowledge.problems import Problems
from gpurules.knowledge.vocabulary import Vocabulary, conda_accelerator, load_vocabulary, parse_sm

SHIPPED = Path(gpurules.__file__).parent / "knowledge" / "vocabulary.yaml"
SMALL = """\
types:
  card:
    kind: observed
    identity: [name]
    domain: cards
    fields:
      name: {type: gpu_name}
      sm: {type: sm}
      driver: {type: version}
      slots: {type: int}
      shown: {type: bool}
      maker: {type: enum, values: [nvidia, amd]}
      build: {type: conda_build}
      note: {type: str, about: anything}
  coverage: {kind: observed, domain: coverage, fields: {domain: {type: str}}}
  row: {kind: catalog, fields: {a: {type: int}}}
  result: {kind: derived, closed_by: rules, fields: {a: {type: int}}}
"""


def read(path: Path, text: str) -> tuple[Vocabulary, list[str]]:
    path.write_text(text, encoding="utf-8")
    problems = Problems()
    found = load_vocabulary(path, problems)
    return found, [str(p) for p in problems.found]


@pytest.fixture(name="small")
def small_vocabulary(tmp_path: Path) -> Vocabulary:
    found, faults = read(tmp_path / "vocabulary.yaml", SMALL)
    assert faults == []
    known = {"RTX 4090": "GeForce RTX 4090"}
    return Vocabulary(found.types, known.get)


def test_the_shipped_file_has_no_fault() -> None:
    problems = Problems()
    vocabulary = load_vocabulary(SHIPPED, problems)
    assert problems.found == []
    for spec in vocabulary.types.values():
        assert (spec.kind == "derived") == bool(spec.closed_by), spec.name
        assert (spec.kind == "observed") == bool(spec.domain), spec.name
        assert set(spec.identity) <= set(spec.fields), spec.name
        assert spec.about, spec.name
        for field in spec.fields.values():
            assert (field.type == "enum") == bool(field.values), f"{spec.name}.{field.name}"


def test_open_world(small: Vocabulary) -> None:
    assert [name for name, spec in small.types.items() if spec.open_world] == ["card"]


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("sm", "8.9", None),
        ("sm", "sm_120", None),
        ("sm", 89, None),
        ("sm", "new", '"sm" must be a compute capability such as 8.9'),
        ("driver", "570.133.07", None),
        ("driver", 570, None),
        ("driver", "newest", '"driver" must be a version'),
        ("slots", 2, None),
        ("slots", "2", '"slots" must be a whole number'),
        ("slots", True, '"slots" must be a whole number'),
        ("slots", 2**53, '"slots" must be a whole number'),
        ("shown", False, None),
        ("shown", "yes", '"shown" must be true or false'),
        ("maker", "amd", None),
        ("maker", "nvida", '"maker" must be one of nvidia, amd; did you mean "nvidia"?'),
        ("note", "x", None),
        ("note", 12, None),
        ("note", None, '"note" must be one value'),
        ("note", ["x"], '"note" must be one value'),
        ("driver", {"a": 1}, '"driver" must be one value'),
        ("nmae", "x", 'unknown field "nmae" of card; did you mean "name"?'),
        ("driver.local", "x", None),
        ("driver.locla", "x", '"driver" has no part "locla"; did you mean "local"?'),
        ("note.local", "x", '"note" has no part "local"'),
    ],
)
def test_check(small: Vocabulary, field: str, value: object, problem: str | None) -> None:
    found = small.check("card", field, value)
    assert (found and str(found)) == problem


def test_check_of_an_unknown_type(small: Vocabulary) -> None:
    assert str(small.check("crad", "name", "x")) == 'unknown type "crad"; did you mean "card"?'


@pytest.mark.parametrize(
    ("field", "value", "typed"),
    [("sm", "8.9", 89), ("sm", 120, 120), ("driver", 570, "570"), ("note", True, "true"), ("slots", 2, 2)],
)
def test_coerce(small: Vocabulary, field: str, value: Scalar, typed: Scalar) -> None:
    found = small.coerce("card", field, value)
    assert (found, type(found)) == (typed, type(typed))


def test_lower(small: Vocabulary) -> None:
    fields: dict[str, Scalar] = {"name": "RTX 4090", "sm": 89, "driver": "570.86.10", "build": "py3.11_cuda12.1_0"}
    kind, row = small.lower(Fact("card", fields, (Provenance("user", "test"),)))
    assert kind == "card"
    numbers = {name for name in row if name.endswith("__n")}
    assert numbers == {"driver__n", "driver__release__n"}
    assert {name: value for name, value in row.items() if name not in numbers} == {
        **fields,
        "name__product": "GeForce RTX 4090",
        "name__label": "GeForce RTX 4090",
        "sm__major": 8,
        "sm__minor": 9,
        "driver__major": 570,
        "driver__public": "570.86.10",
        "driver__local": "",
        "driver__release": "570.86",
        "build__accelerator": "cuda",
    }


def test_what_cannot_be_told_has_no_part(small: Vocabulary) -> None:
    assert small.lower_fields("card", {"name": "Some card", "driver": "unknown", "build": "h123_0"}) == {
        "name": "Some card",
        "name__label": "Some card",
        "driver": "unknown",
        "build": "h123_0",
    }


@pytest.mark.parametrize(
    ("text", "sm"),
    [("8.9", 89), ("sm_90a", 90), ("compute_120", 120), (" 75 ", 75), ("12.0", 120), ("gfx90a", None), ("", None)],
)
def test_parse_sm(text: str, sm: int | None) -> None:
    assert parse_sm(text) == sm


@pytest.mark.parametrize(
    ("build", "accelerator"),
    [
        ("cpu_generic_py312_h1_0", "cpu"),
        ("cuda126_py311_h2_200", "cuda"),
        ("py3.11_cuda12.1_cudnn8.9.2_0", "cuda"),
        ("py3.10_cpu_0", "cpu"),
        ("py311h06a4308_0", None),
    ],
)
def test_conda_accelerator(build: str, accelerator: str | None) -> None:
    assert conda_accelerator(build) == accelerator


def test_faults_of_the_file(tmp_path: Path) -> None:
    _, faults = read(
        tmp_path / "vocabulary.yaml",
        "types:\n  Card:\n    kind: observed\n  card:\n    kind: seen\n    fields:\n"
        "      sm: {type: int}\n      n: {type: inta}\n",
    )
    assert faults == [
        "vocabulary.yaml:2: Card: a type's name is lower case with underscores",
        "vocabulary.yaml:5: card.kind: must be one of observed, catalog, derived",
        'vocabulary.yaml:8: card.n: unknown field type "inta"; did you mean "int"?',
    ]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2.8.3+cu12torch2.6cxx11abiFALSE", "2.6"),
        ("2.1.2+pt210cu126", "2.10"),
        ("2.1.2+pt26cpu", "2.6"),
        ("2.6.0+cu124", None),
        ("0.0.30", None),
        ("1.0+torchless", None),
    ],
)
def test_the_local_part_of_a_wheel_names_what_it_is_built_for(version: str, expected: str | None) -> None:
    lowered = load_vocabulary(SHIPPED, Problems()).lower_fields("package", {"name": "x", "version": version})
    assert lowered.get("version__built_for") == expected
