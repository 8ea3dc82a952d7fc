"""Checking a newer catalog before use: what it would change, and whether the knowledge still holds together with it.

May live here: laying one catalog file over the shipped ones in a scratch folder, and comparing rows. Must not: fetching
anything, changing the knowledge, wording.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..facts import Scalar
from ..messages import Message
from .catalogs import CatalogRow, Catalogs, load_catalogs
from .checker import check
from .loader import FOLDER
from .problems import Problem, Problems, did_you_mean
from .vocabulary import Vocabulary, load_vocabulary
from .yamlnodes import parse


@dataclass(frozen=True, slots=True)
class Update:
    """What a catalog file would do. problems: why it must not be used; the lists name rows."""

    catalog: str
    old_day: str
    new_day: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def older(self) -> bool:
        """Whether the file is of an earlier day than what is here."""
        return self.new_day < self.old_day


def check_update(name: str, data: bytes) -> Update:
    """What the file (its name and content) would do in place of the shipped catalog that it names."""
    problems = Problems()
    root = parse(data.decode("utf-8", "replace"), name, problems)
    title = root.get("catalog") if root else None
    known = sorted(path.stem for path in (FOLDER / "facts").glob("*.yaml"))
    if title is None or title.text not in known:
        told = Message("fault.names_no_catalog", known=known)
        if title is not None:
            told = Message("fault.names_catalog", known=known, name=title.text, hint=did_you_mean(title.text, known))
        problems.add(name, title.line if title else 0, "catalog", told)
    problems.raise_if_any()
    assert title is not None
    catalog = title.text
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch, "facts", f"{catalog}.yaml")
        target.parent.mkdir()
        target.write_bytes(data)
        found = check(Path(scratch))
        vocabulary = load_vocabulary(FOLDER / "vocabulary.yaml", Problems())
        old = load_catalogs(FOLDER / "facts", vocabulary, Problems())
        new = load_catalogs(FOLDER / "facts", vocabulary, Problems(), {f"facts/{catalog}.yaml": target})
    before, after = _rows(old, catalog, vocabulary), _rows(new, catalog, vocabulary)
    return Update(
        catalog=catalog,
        old_day=old.retrieved.get(catalog, ""),
        new_day=new.retrieved.get(catalog, ""),
        added=tuple(k for k in after if k not in before),
        removed=tuple(k for k in before if k not in after),
        changed=tuple(k for k in after if k in before and after[k] != before[k]),
        problems=tuple(found),
    )


def _rows(catalogs: Catalogs, catalog: str, vocabulary: Vocabulary) -> dict[str, Mapping[str, Scalar]]:
    return {_key(r, vocabulary): r.fields for r in catalogs.rows if Path(r.file).stem == catalog}


def _key(row: CatalogRow, vocabulary: Vocabulary) -> str:
    identity = vocabulary.types[row.type].identity
    return " ".join([row.type, *(str(row.fields.get(name)) for name in identity)])
