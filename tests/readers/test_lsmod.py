"""lsmod and /proc/modules."""

from __future__ import annotations

import pytest
from gpurules.probes.readers.lsmod import read

from .support import facts_of, fields_of


def test_table_of_more_than_twenty_rows_covers_the_modules():
    head = "Module                  Size  Used by\n"
    rows = "".join(f"mod_{number:<18}{4096 * (number + 1):>8}  {number}\n" for number in range(20))
    text = head + rows + "nvidia_uvm           4898816  0\nnvidia              54063104  5 nvidia_uvm,nvidia_modeset\n"
    facts = facts_of(read, text)
    modules = fields_of(facts, "module")
    assert len(modules) == 22
    assert modules[-1] == {"name": "nvidia", "loaded": True}
    assert fields_of(facts, "coverage") == [{"domain": "modules", "complete": True}]
    assert str(facts[-2].provenance[0]) == "paste.txt:23"


def test_short_table_covers_nothing():
    facts = facts_of(read, "Module                  Size  Used by\next4                 999424  1\n")
    assert [(fact.type, dict(fact.fields)) for fact in facts] == [("module", {"name": "ext4", "loaded": True})]


def test_grep_keeps_display_modules_only():
    facts = facts_of(read, "$ lsmod | grep n\nnouveau             2306048  0\nbinfmt_misc           24576  1\n")
    assert fields_of(facts, "module") == [{"name": "nouveau", "loaded": True}]


def test_proc_modules():
    facts = facts_of(
        read, "amdgpu 17000000 12 - Live 0x0000000000000000 (OE)\nccp 131072 1 kvm_amd, Live 0x0000000000000000\n"
    )
    assert [row["name"] for row in fields_of(facts, "module")] == ["amdgpu", "ccp"]


@pytest.mark.parametrize("text", ["nvidia", "nvidia 12 3 x y z", "Module Size", "nvidia-smi 4096 1"])
def test_no_table(text):
    assert facts_of(read, text) == []
