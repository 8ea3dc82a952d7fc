"""Takes private things out of facts and texts, so that a report can be shown to strangers.

May live here: what is private and its placeholder. Must not: reading or judging facts.

Placeholders are the same for the same input: <user>, <host>, <ip>, <mac>, <email>, <ssid>, <container>, <secret>,
<credentials>, and numbered <uuid-1> and <serial-1>, because which GPU is which must stay visible. Redacting twice
changes nothing.
Loopback and wildcard addresses stay: they name nobody and matter in a diagnosis.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..facts import Fact, Scalar

__all__ = ["redact", "redact_input", "redact_text", "redact_values"]

_Found = re.Match[str]

_URL_CREDENTIALS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,20}://)[^/@\s\"'<>]+@")
_SECRET_VALUE = re.compile(
    r"(?i)(?P<name>\b[a-z0-9_.-]{0,60}(?:token|secret|passwd|password|api_?key|access_?key|private_?key|credentials?)"
    r"[a-z0-9_]{0,20}[\"']?\s{0,3}[=:]\s{0,3}[\"']?)(?P<value>[^\s\"'<>,;]{3,})"
)
_BEARER = re.compile(r"(?i)\b(?P<name>(?:bearer|basic)\s+)[a-z0-9._~+/=-]{12,}")
_TOKEN = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|sk-[A-Za-z0-9_-]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}|nvapi-[A-Za-z0-9_-]{20,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})"
)
_EMAIL = re.compile(r"\b(?P<user>[A-Za-z0-9._%+-]{1,64})@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,24}\b")
_UUID = re.compile(
    r"\b(?P<kind>GPU-|MIG-)?[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
)
_SERIAL = re.compile(r"(?i)(?P<name>\bserial(?: ?number| ?no\.?)?\s{0,40}[:=]\s{0,4})(?P<value>[a-z0-9-]{5,40})\b")
_MAC = re.compile(r"\b[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}\b")
_HOME = re.compile(
    r"(?P<parent>(?:/home/|/Users/|/data/home/|[A-Za-z]:\\{1,2}Users\\{1,2}))(?P<user>[^/\\\s\"':;,<>|]{1,64})"
)
_PROMPT = re.compile(
    r"(?m)^(?P<before>\s{0,8}(?:\([^()\n]{1,40}\)\s?){0,3}\[?)(?P<user>[A-Za-z_][\w.-]{0,31})@(?P<host>[A-Za-z0-9][\w.-]{0,62})"
    r"(?P<after>[: \]~])"
)
# A prompt or a remote path in the middle of a line: alice@node17:~/x.
_REMOTE = re.compile(r"\b(?P<user>[A-Za-z_][\w.-]{0,31})@(?P<host>[A-Za-z0-9][\w.-]{0,62})(?P<after>:[~/])")
_SYSLOG = re.compile(
    r"(?m)^(?P<time>\s{0,4}(?:[A-Z][a-z]{2} [ 0-9][0-9] |\d{4}-\d\d-\d\dT)[ 0-9][0-9]:\d\d:\d\d[0-9.+:Z-]{0,16} )"
    r"(?P<host>[A-Za-z0-9][\w.-]{0,62}) (?P<after>[\w./-]{1,40}(?:\[\d{1,8}\])?:)"
)
_NCCL = re.compile(
    r"(?m)(?P<before>^|[\s>\"'(])(?P<host>[A-Za-z][\w.-]{0,62})(?P<after>:\d{1,8}:\d{1,8} \[\d{1,3}\] NCCL )"
)
_PRIVATE_NAME = re.compile(
    r"\b(?:(?:[A-Za-z0-9-]{1,63}\.){1,5}(?:local|internal|lan|corp|intra|intranet|home\.arpa)"
    r"|ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3})\b"
)
_SSID = re.compile(r"(?i)(?P<name>\be?ssid[\"']?\s{0,3}[:=]\s{0,3}[\"']?)(?P<value>[^\"'\s,;]{1,64})")
# Digests of images are public, ids of containers are not.
_CONTAINER = re.compile(r"(?P<digest>sha256:)?\b[0-9a-f]{64}\b|\b(?P<parent>docker[-/])[0-9a-f]{12}\b")
_IPV4 = re.compile(r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b")
_IPV6 = re.compile(r"[0-9A-Fa-f:]{2,39}(?:%[\w.-]{1,16})?")
# Four numbers after these are a version: `nvidia-curand-cu12  10.3.5.147`, `cudnn: 9.1.0.70`.
_VERSION_BEFORE = re.compile(
    r"(?i)(?:(?:\b(?:nvidia|cuda|cudnn|libcu|libnv|cublas|tensorrt)[a-z0-9.\[\]-]{0,40}"
    r"|(?:driver|version|release|build|wsl))[\"']?\s{0,40}(?:==|>=|<=|~=|[=:])?\s{0,40}[\"']?v?|==\s?|\bv)$"
)
_LOOK_BACK = 96
# No person: shared accounts, and what documentation writes.
_COMMON_USERS = frozenset(
    {"root", "user", "username", "ubuntu", "shared", "public", "default", "all users", "git", "admin"}
)
# Names of machines or users that are also words of the trade: only taken out where they stand as a name.
_TECHNICAL = frozenset(
    {"amd", "conda", "cuda", "debian", "docker", "gpu", "jetson", "kernel", "linux", "localhost", "nvidia", "python",
     "pytorch", "rocm", "server", "torch", "windows", "workstation"}
)  # fmt: skip
# Not / and the like.
_SHORTEST_HOME = 4
_HOST_VARIABLES = frozenset({"MASTER_ADDR", "HOSTNAME", "HOST", "COMPUTERNAME"})


def redact(facts: Iterable[Fact]) -> list[Fact]:
    """The facts without private things; the same placeholder stands for the same thing in all of them."""
    given = list(facts)
    redactor = _Redactor()
    for fact in given:
        for text in _texts(fact):
            redactor.learn(text)
    return [_redacted(fact, redactor) for fact in given]


def redact_input(
    facts: Iterable[Fact],
    texts: Iterable[str],
    raw: Iterable[str],
    home: str,
    host: str,
    closed: Container[tuple[str, str]] = (),
) -> tuple[list[Fact], list[str]]:
    """Facts and further texts of one input without private things.

    raw: what they were read from; names that stand there are known everywhere. home: the reader's own folder, which
    becomes ~. host: what the reader's machine is called, where it is the one that is spoken of. closed: the fields, as
    (type, field), whose values are words of ours, which a machine may be called by too.
    """
    at_home = [_at_home(fact, home) for fact in facts]
    shorter = [_shortened(text, home) for text in texts]
    redactor = _Redactor()
    redactor.learn(f"{home}/\n{host}:1:1 [0] NCCL ")
    for text in (*raw, *(text for fact in at_home for text in _texts(fact)), *shorter):
        redactor.learn(text)
    return [_redacted(fact, redactor, closed) for fact in at_home], [redactor(text) for text in shorter]


def _at_home(fact: Fact, home: str) -> Fact:
    if not any(home in text for text in _texts(fact)):
        return fact
    fields = {k: _shortened(v, home) if isinstance(v, str) else v for k, v in fact.fields.items()}
    return replace(fact, fields=fields)


def _shortened(text: str, home: str) -> str:
    """The text with ~ for the folder, where a path or a list of paths begins with it."""
    if len(home) < _SHORTEST_HOME or home not in text:
        return text
    return re.sub(
        r"(?P<before>^|[\s:;=\"'(,])" + re.escape(home) + r"(?P<after>[/\\]|$|[\s:;\"'),])",
        r"\g<before>~\g<after>",
        text,
    )


def redact_text(text: str) -> str:
    """The text without private things."""
    redactor = _Redactor()
    redactor.learn(text)
    return redactor(text)


def redact_values(value: Any) -> Any:
    """Nested lists and dictionaries (a report as JSON) with every text in them redacted; keys stay."""
    redactor = _Redactor()
    for text in _nested_texts(value):
        redactor.learn(text)
    return _redacted_value(value, redactor, versions=False)


def _nested_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _nested_texts(item)


def _redacted_value(value: Any, redactor: _Redactor, *, versions: bool) -> Any:
    if isinstance(value, str):
        return redactor(value, versions=versions)
    if isinstance(value, list | tuple):
        return [_redacted_value(item, redactor, versions=versions) for item in value]
    if not isinstance(value, Mapping):
        return value
    found = {name: _redacted_value(item, redactor, versions=name in _VERSION_FIELDS) for name, item in value.items()}
    return {**found, "value": "<host>"} if "value" in found and _names_a_host(value) else found


def _names_a_host(fields: Mapping[str, Any]) -> bool:
    return fields.get("name") in _HOST_VARIABLES and not _is_address(str(fields.get("value") or ""))


def _texts(fact: Fact) -> list[str]:
    return [value for value in fact.fields.values() if isinstance(value, str)]


def _redacted(fact: Fact, redactor: _Redactor, closed: Container[tuple[str, str]] = ()) -> Fact:
    fields: dict[str, Scalar] = {}
    for name, value in fact.fields.items():
        fields[name] = (
            redactor(value, versions=name in _VERSION_FIELDS)
            if isinstance(value, str) and (fact.type, name) not in closed
            else value
        )
    if fact.type == "env_var" and _names_a_host(fact.fields):
        fields["value"] = "<host>"
    provenance = tuple(
        replace(place, source=redactor(place.source), reader=redactor(place.reader)) for place in fact.provenance
    )
    return replace(fact, fields=fields, provenance=provenance)


# Fields that hold versions, which look like addresses: cuDNN 9.1.0.70.
_VERSION_FIELDS = frozenset(
    {
        "at_least",
        "below",
        "built_for",
        "cuda",
        "cuda_max",
        "cudnn",
        "distro_version",
        "hip",
        "kernel",
        "l4t",
        "release",
        "torch",
        "version",
        "wanted",
        "windows_build",
    }
)


def _is_address(value: str) -> bool:
    return value in ("localhost", "<ip>") or _address(value) is not None


class _Redactor:
    """Remembers what it has replaced, so that one thing has one placeholder."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, int]] = {"uuid": {}, "serial": {}}
        self._users: set[str] = set()
        self._hosts: set[str] = set()

    def learn(self, text: str) -> None:
        """Note names that stand in plain places, to find them elsewhere in the same input."""
        for found in (*_HOME.finditer(text), *_PROMPT.finditer(text), *_REMOTE.finditer(text)):
            user = found["user"]
            if len(user) >= 3 and user.lower() not in _COMMON_USERS | _TECHNICAL and not user.startswith("<"):
                self._users.add(user)
        prompts = (*_PROMPT.finditer(text), *_REMOTE.finditer(text))
        for found in (*prompts, *_SYSLOG.finditer(text), *_NCCL.finditer(text)):
            host = found["host"]
            if len(host) >= 3 and host.lower() not in _TECHNICAL:
                self._hosts.add(host)

    def __call__(self, text: str, *, versions: bool = False) -> str:
        """The text without private things; `versions` says that dotted numbers in it are versions."""
        for pattern, replacement in _FIXED:
            text = pattern.sub(replacement, text)
        text = _UUID.sub(lambda found: (found["kind"] or "") + self._numbered("uuid", found.group().lower()), text)
        text = _SERIAL.sub(self._serial, text)
        if not versions:
            text = _IPV4.sub(_ipv4, text)
            text = _IPV6.sub(_ipv6, text)
        return self._known_names(text)

    def _serial(self, found: _Found) -> str:
        # "Serial Number : N/A" and words of prose are no serial.
        if not any(character.isdigit() for character in found["value"]):
            return found.group()
        return found["name"] + self._numbered("serial", found["value"].lower())

    def _numbered(self, kind: str, value: str) -> str:
        numbers = self._numbers[kind]
        return f"<{kind}-{numbers.setdefault(value, len(numbers) + 1)}>"

    def _known_names(self, text: str) -> str:
        for names, placeholder in ((self._users, "<user>"), (self._hosts, "<host>")):
            present = sorted((name for name in names if name in text), key=lambda name: (-len(name), name))
            for name in present:
                text = re.sub(rf"(?:^|\b){re.escape(name)}(?:\b|$)", placeholder, text)
        return text


def _home(found: _Found) -> str:
    return found.group() if found["user"].lower() in _COMMON_USERS else f"{found['parent']}<user>"


def _email(found: _Found) -> str:
    # git@github.com:owner/name is an address of code.
    return found.group() if found["user"] == "git" else "<email>"


def _remote(found: _Found) -> str:
    # git@github.com:/owner is an address of code.
    return found.group() if found["user"] == "git" else f"<user>@<host>{found['after']}"


def _container(found: _Found) -> str:
    return found.group() if found["digest"] else f"{found['parent'] or ''}<container>"


def _prompt(found: _Found) -> str:
    user = found["user"] if found["user"].lower() in _COMMON_USERS else "<user>"
    return f"{found['before']}{user}@<host>{found['after']}"


def _secret(found: _Found) -> str:
    value = found["value"]
    # "tokens: 4096" and "max_tokens=2048" count words; they are no secret.
    is_count = value.replace(".", "").replace("_", "").isdigit() or value.lower() in ("true", "false", "none", "null")
    return found.group() if is_count else f"{found['name']}<secret>"


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _stands_alone(found: _Found) -> bool:
    """Whether the match is no part of a longer word, path or version."""
    text, start, end = found.string, found.start(), found.end()
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    dotted = after == "." and text[end + 1 : end + 2].isalnum()
    return not (before.isalnum() or before in "._-+" or after.isalnum() or after in "_-+" or dotted)


def _ipv4(found: _Found) -> str:
    address = _address(found.group())
    if address is None or address.is_loopback or address.is_unspecified or not _stands_alone(found):
        return found.group()
    before = found.string[max(0, found.start() - _LOOK_BACK) : found.start()]
    return found.group() if _VERSION_BEFORE.search(before) else "<ip>"


def _ipv6(found: _Found) -> str:
    text = found.group()
    address = _address(text)
    # Two hexadecimal words and a double colon are more often C++ than an address.
    if address is None or address.is_loopback or address.is_unspecified or text.count(":") < 3:
        return text
    return "<ip>" if _stands_alone(found) else text


_FIXED: tuple[tuple[re.Pattern[str], str | Callable[[_Found], str]], ...] = (
    (_URL_CREDENTIALS, r"\g<scheme><credentials>@"),
    (_BEARER, r"\g<name><secret>"),
    (_TOKEN, "<secret>"),
    (_SECRET_VALUE, _secret),
    (_EMAIL, _email),
    (_MAC, "<mac>"),
    (_HOME, _home),
    (_PROMPT, _prompt),
    (_REMOTE, _remote),
    (_SSID, r"\g<name><ssid>"),
    (_CONTAINER, _container),
    (_SYSLOG, r"\g<time><host> \g<after>"),
    (_NCCL, r"\g<before><host>\g<after>"),
    (_PRIVATE_NAME, "<host>"),
)
