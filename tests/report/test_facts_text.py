from __future__ import annotations

import json

import yaml
from gpurules.facts import Fact
from gpurules.report.facts_text import facts_json, facts_yaml, redactions

FACTS = [
    Fact("gpu", {"index": 0, "name": "NVIDIA GeForce RTX 4090", "sm": 89, "display_active": True}),
    Fact("driver", {"vendor": "nvidia", "version": "570.10"}),
    Fact("env_var", {"name": "PATH", "value": "/home/<user>/a:/home/<user>/b"}),
    Fact("gpu", {"uuid": "GPU-<uuid-1>", "name": "evil\x1b[2J\nname: yes"}),
    Fact("statement", {"kind": "显存"}),
]


def test_yaml() -> None:
    assert (
        facts_yaml(FACTS)
        == """\
facts:
- {gpu: {index: 0, name: NVIDIA GeForce RTX 4090, sm: 89, display_active: true}}
- {driver: {vendor: nvidia, version: '570.10'}}
- {env_var: {name: PATH, value: '/home/<user>/a:/home/<user>/b'}}
- {gpu: {uuid: GPU-<uuid-1>, name: 'evil name: yes'}}
- {statement: {kind: 显存}}
"""
    )
    assert facts_yaml([]) == "facts: []\n"


def test_both_forms_say_the_same() -> None:
    assert (
        yaml.safe_load(facts_yaml(FACTS))
        == json.loads(facts_json(FACTS))
        == json.loads(facts_json(FACTS, ascii_only=True))
    )
    assert json.loads(facts_json(FACTS))["facts"][1] == {"driver": {"vendor": "nvidia", "version": "570.10"}}


def test_redactions_name_places_not_values() -> None:
    assert redactions(FACTS) == ["env_var.value <user> 2x", "gpu.uuid <uuid-1>"]
