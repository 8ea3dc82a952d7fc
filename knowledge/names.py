"""GPU names: which product a printed, typed or cut name means, or that it cannot be told.

May live here: how names are written (spacing, trade marks, bus forms, plurals, counts in English and Chinese). Must
not: any product; the names are data in `knowledge/facts/gpus.yaml`.

A name is compared token by token (runs of letters, runs of digits), never by substring, so that L4 is not found in
L40S. The longest known name wins, and a known name followed by a word that makes another product of it ("SUPER",
"Laptop") is not that product. Looking at one token costs a bounded number of dictionary look-ups.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(r"[a-z]+|[0-9]+")
_MARKS = re.compile(r"\((?:tm|r|c)\)|[\u2122\u00ae\u00a9]")
_COUNT_GLUED = re.compile(r"\b([0-9]{1,3})x([a-z])")
_BRANDS = frozenset(("geforce", "tesla", "instinct"))
_RADEON_LINES = frozenset(("rx", "pro", "ai"))
_LINE_WORDS = frozenset(("geforce", "quadro", "tesla", "titan", "radeon", "rx", "rtx", "gtx", "pro", "instinct", "arc"))
_MAKER_WORDS = frozenset(("nvidia", "amd", "ati", "intel", "corporation", "inc"))
_OTHER_PRODUCT = frozenset(
    ("super", "ti", "xt", "xtx", "gre", "laptop", "mobile", "ada", "blackwell", "nvl", "ultra", "boost")
)
# "A2" and "M4" mean too much else; so short a name counts only where the catalog gives it as an alias.
_TOO_SHORT = 2
_LAPTOP = " laptop gpu"
_MOBILE_FORMS = (" laptop", " mobile", " mobile / max-q", " max-q", " with max-q design")

_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "single": 1, "two": 2, "dual": 2, "double": 2, "pair of": 2, "three": 3, "four": 4,
    "quad": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "ten": 10, "twelve": 12, "sixteen": 16,
    "一": 1, "单": 1, "两": 2, "二": 2, "双": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "十": 10,
}  # fmt: skip
_MAKERS = r"(?:(?:nvidia|amd|intel|geforce|radeon|used|new)\s+){0,3}"
_COUNT_BEFORE = re.compile(
    r"(?:\A|[^0-9.a-z])(?:"
    r"(?P<times>[0-9]{1,3})\s*[x×*]"
    r"|(?P<measured>[0-9]{1,3})\s*[张块个卡片枚台颗路]"
    r"|(?P<plain>[0-9]{1,2})"
    r"|(?P<chinese>[一单两二双三四五六七八十])\s*[张块个卡片枚台颗路]?"
    r"|(?P<word>an?|one|single|two|dual|double|pair of|three|four|quad|five|six|seven|eight|ten|twelve|sixteen)"
    r")\s*" + _MAKERS + r"\Z"
)
_COUNT_AFTER = re.compile(
    r"\s*(?:[0-9]{1,3}\s?g(?:i?b)?\s*)?\(?\s*(?:[x×*]\s*(?P<times>[0-9]{1,3})(?:\Z|[^0-9.a-z])"
    r"|(?P<measured>[0-9]{1,3})\s*[张块卡片]|(?P<chinese>[一两二双三四五六八])\s*[张块卡片])"
)
# A count is looked for in this much text on either side.
_REACH = 40
# A bare number ("with 2 RTX 3090") is a count only after such a word or mark; elsewhere it may be a version.
_PLAIN_COUNT_AFTER = re.compile(
    r"(?:\A|[,;:(+&、，；：（和与有])\s*\Z"
    r"|\b(?:with|have|has|had|of|on|and|my|our|using|use|uses|got|plus|own|are|is)\s+\Z"
)


@dataclass(frozen=True, slots=True)
class GpuName:
    """A product and what else it is called; a line ("A100") stands for its members when no more can be told."""

    product: str
    aliases: tuple[str, ...] = ()
    line: bool = False


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int
    end: int
    glued: bool  # follows the token before without anything between


@dataclass(frozen=True, slots=True)
class _Known:
    """What a spelling means; product None: two products have it with equal right."""

    product: str | None
    authority: int  # 0 the product's own name, 1 an alias of the catalog, 2 a form derived from those
    glued: tuple[bool, ...]  # tokens that must follow the one before without a space: A100, not "a 100 W"


@dataclass(frozen=True, slots=True)
class _Match:
    first: int
    last: int  # the index after its last token
    product: str | None


class GpuNames:
    """Recognises GPU names; immutable once made, so that sessions can share it."""

    def __init__(self, names: Iterable[GpuName]) -> None:
        listed = tuple(names)
        self._words = {name.product: _words(name.product) for name in listed}
        self._lines = {name.product: self._words[name.product] for name in listed if name.line}
        self._known: dict[tuple[str, ...], _Known] = {}
        for authority, spelled in enumerate((_own_names(listed), _given_aliases(listed), _derived_forms(listed))):
            for text, product in spelled:
                self._learn(text, product, authority)
        self._longest = max((len(key) for key in self._known), default=0)

    def table(self) -> dict[str, Any]:
        """What was learnt, as plain lists; `from_table` makes the same recogniser of it, faster than the names do."""
        return {
            "words": {product: list(words) for product, words in self._words.items()},
            "lines": sorted(self._lines),
            "known": [[list(key), k.product, k.authority, list(k.glued)] for key, k in self._known.items()],
        }

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> GpuNames:
        """The recogniser that `table` was made of."""
        made = cls(())
        made._words = {product: tuple(words) for product, words in table["words"].items()}
        made._lines = {product: made._words[product] for product in table["lines"]}
        made._known = {tuple(key): _Known(p, authority, tuple(glued)) for key, p, authority, glued in table["known"]}
        made._longest = max((len(key) for key in made._known), default=0)
        return made

    def _learn(self, text: str, product: str, authority: int) -> None:
        tokens = _tokenise(_clean(text))
        key = tuple(token.text for token in tokens)
        glued = tuple(token.glued and token.text != "gb" for token in tokens)
        old = self._known.get(key)
        if old is None:
            self._known[key] = _Known(product, authority, glued)
        elif old.product != product and old.authority == authority:
            self._known[key] = _Known(None, authority, glued)

    def identify(self, text: str) -> str | None:
        """The product that a name field means, None where it is unknown, cut short or not the only one."""
        clean = _clean(text)
        tokens = _tokenise(clean)
        if clean.rstrip().endswith(".."):
            return self._identify_cut(tokens, whole=clean.rstrip().rstrip(".").endswith(" "))
        found: set[str | None] = set()
        for match in self._matches(tokens, clean):
            found.add(None if _is_listed(tokens, match, clean) else match.product)
        if any(_goes_on(tokens, m.last, clean) for m in self._begun(tokens)):
            found.add(None)
        return found.pop() if len(found) == 1 else None

    def find_all(self, sentence: str) -> list[tuple[str, int]]:
        """The products that a sentence names, in order, each with how many it speaks of (1 where it does not say)."""
        clean = _clean(sentence)
        tokens = _tokenise(clean)
        counts: dict[str, int] = {}
        for match in self._matches(tokens, clean):
            if match.product is not None:
                count = _count(clean, tokens[match.first].start, tokens[match.last - 1].end)
                counts[match.product] = max(count, counts.get(match.product, 0))
        return list(counts.items())

    def _matches(self, tokens: Sequence[_Token], text: str) -> Iterator[_Match]:
        """The longest known name at each place, left to right, without overlaps."""
        return (match for match in self._begun(tokens) if not _goes_on(tokens, match.last, text))

    def _begun(self, tokens: Sequence[_Token]) -> Iterator[_Match]:
        """The same, with names that what follows makes another product of."""
        position = 0
        while position < len(tokens):
            match = None if tokens[position].glued else self._match_at(tokens, position)
            if match is not None:
                yield match
            position = match.last if match is not None else position + 1

    def _match_at(self, tokens: Sequence[_Token], first: int) -> _Match | None:
        for length in range(min(self._longest, len(tokens) - first), 0, -1):
            window = tokens[first : first + length]
            known = self._known.get(tuple(token.text for token in window))
            if known and all(token.glued or not must for token, must in zip(window, known.glued, strict=True)):
                return _Match(first, first + length, known.product)
        return None

    def _identify_cut(self, tokens: Sequence[_Token], *, whole: bool) -> str | None:
        """The only product, or the line of all products, that the cut name can be the beginning of."""
        for first in range(max(0, len(tokens) - self._longest), len(tokens)):
            begun = tuple(token.text for token in tokens[first:])
            products = {known.product for key, known in self._known.items() if _begins(key, begun, whole)}
            if products:
                return self._only(products)
        return None

    def _only(self, products: set[str | None]) -> str | None:
        if len(products) == 1:
            return products.pop()
        covering = [
            line
            for line, words in self._lines.items()
            if all(product is not None and self._words[product][: len(words)] == words for product in products)
        ]
        return max(covering, key=len, default=None)


def _own_names(names: Iterable[GpuName]) -> Iterator[tuple[str, str]]:
    return ((name.product, name.product) for name in names if len(name.product) > _TOO_SHORT)


def _given_aliases(names: Iterable[GpuName]) -> Iterator[tuple[str, str]]:
    return ((alias, name.product) for name in names for alias in name.aliases)


def _derived_forms(names: Sequence[GpuName]) -> Iterator[tuple[str, str]]:
    """Forms without the brand, and what laptops and lspci call the mobile part."""
    products = {name.product.lower() for name in names}
    for name in names:
        for full in (name.product, *name.aliases):
            mobile = _mobile_forms(full.lower(), products)
            yield from ((form, name.product) for form in mobile)
            for form in (full, *mobile):
                first, _, rest = form.partition(" ")
                bare_radeon = first.lower() == "radeon" and rest.partition(" ")[0].lower() in _RADEON_LINES
                if len(rest) > _TOO_SHORT and (first.lower() in _BRANDS or bare_radeon):
                    yield rest, name.product


def _mobile_forms(name: str, products: set[str]) -> list[str]:
    """Before the RTX 30 series, mobile GeForce parts have the desktop part's name; since then "Laptop GPU"."""
    if name.endswith(_LAPTOP):
        base = name.removesuffix(_LAPTOP)
    elif name.startswith("geforce") and name + _LAPTOP not in products:
        base = name
    else:
        return []
    return [base + form for form in (_LAPTOP, *_MOBILE_FORMS)]


def _clean(text: str) -> str:
    """Lower case, one form of each character, no trade marks; `2xRTX` parted."""
    plain = unicodedata.normalize("NFKC", _MARKS.sub(" ", text)).lower()
    return _COUNT_GLUED.sub(r"\1x \2", _MARKS.sub(" ", plain))


def _tokenise(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    end = -1
    for match in _TOKEN.finditer(text):
        word, glued = match.group(), match.start() == end
        after_size = bool(tokens) and tokens[-1].text.isdigit() and not tokens[-1].glued
        if after_size and (word in ("gib", "gb") or (word == "g" and glued)):
            word = "gb"
        tokens.append(_Token(word, match.start(), match.end(), glued))
        end = match.end()
    return tokens


def _words(text: str) -> tuple[str, ...]:
    return tuple(token.text for token in _tokenise(_clean(text)))


def _begins(key: tuple[str, ...], begun: tuple[str, ...], whole: bool) -> bool:
    """Whether the spelling can go on from a cut one, whose last token is whole or cut itself."""
    if len(key) < len(begun) or key[: len(begun) - 1] != begun[:-1]:
        return False
    return key[len(begun) - 1] == begun[-1] if whole else key[len(begun) - 1].startswith(begun[-1])


def _is_listed(tokens: Sequence[_Token], match: _Match, text: str) -> bool:
    """Whether a stroke makes the name one of several: `9070/9070 XT`, `Pro VII/Instinct MI50`."""
    follower = tokens[match.last] if match.last < len(tokens) else None
    # A renderer string goes on after a stroke as well: 3090/PCIe/SSE2.
    names = follower is not None and (follower.text.isdigit() or follower.text in _LINE_WORDS)
    if follower and names and "/" in text[tokens[match.last - 1].end : follower.start]:
        return True
    first = match.first
    while first and tokens[first - 1].text in _LINE_WORDS:
        first -= 1
        if "/" in text[tokens[first].end : tokens[first + 1].start]:
            return True
    parted = first > 0 and "/" in text[tokens[first - 1].end : tokens[first].start]
    return parted and tokens[first - 1].text not in _MAKER_WORDS


def _goes_on(tokens: Sequence[_Token], index: int, text: str) -> bool:
    """Whether what follows a known name makes another product of it."""
    if index >= len(tokens):
        return False
    follower = tokens[index]
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    if follower.glued:
        plural = follower.text == "s" and not (after and after.glued)
        counted = follower.text == "x" and bool(after and after.glued and after.text.isdigit())
        return not (plural or counted)
    between = text[tokens[index - 1].end : follower.start]
    return follower.text in _OTHER_PRODUCT and not between.strip(" \t-_")


def _count(text: str, start: int, end: int) -> int:
    before = _COUNT_BEFORE.search(text[max(0, start - _REACH) : start])
    after = _COUNT_AFTER.match(text[end : end + _REACH])
    for found in (before, after):
        groups = found.groupdict() if found else {}
        for name, value in groups.items():
            if value is None or not found:
                continue
            if name != "plain":
                return _number(value)
            if not before or _PLAIN_COUNT_AFTER.search(before.string[: before.start(name)] or ""):
                return _number(value)
    return 1


def _number(text: str) -> int:
    return _NUMBERS.get(text) or max(1, int(text))
