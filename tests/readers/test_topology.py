"""nvidia-smi topo -m: tabs, blanks, escapes, cut ends, several machines."""

from __future__ import annotations

import pytest
from gpurules.probes.readers.topology import read

from .support import facts_of, fields_of

TABS = (
    "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV4\tPXB\t0-15,32-47\t0-1\t\tN/A\n"
    "GPU1\tNV4\t X \tSYS\t\tN/A\t\tN/A\n"
    "NIC0\tPXB\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
    "\nNIC Legend:\n\n  NIC0: mlx5_7\n"
)
BLANKS = """
        GPU0    GPU1    CPU Affinity    NUMA Affinity
GPU0     X      PHB     0-7             N/A
GPU1    PHB      X      0-7             N/A
"""


def test_tabs_escapes_and_legend():
    facts = facts_of(read, TABS)
    assert fields_of(facts, "topology_link") == [
        {"machine": 0, "a": "GPU0", "b": "GPU1", "link": "NV4"},
        {"machine": 0, "a": "GPU0", "b": "NIC0", "link": "PXB"},
        {"machine": 0, "a": "GPU1", "b": "NIC0", "link": "SYS"},
    ]
    assert fields_of(facts, "topology_device") == [
        {"machine": 0, "name": "GPU0", "cpu_affinity": "0-15,32-47", "numa": "0-1"},
        {"machine": 0, "name": "GPU1"},
        {"machine": 0, "name": "NIC0", "nic": "mlx5_7"},
    ]
    assert fields_of(facts, "coverage") == [{"domain": "topology", "complete": True}]


def test_several_machines_and_a_matrix_printed_twice():
    facts = facts_of(read, BLANKS + TABS + BLANKS)
    assert [row["machine"] for row in fields_of(facts, "topology_link")] == [0, 1, 1, 1]
    assert fields_of(facts, "topology_device")[:2] == [
        {"machine": 0, "name": "GPU0", "cpu_affinity": "0-7"},
        {"machine": 0, "name": "GPU1", "cpu_affinity": "0-7"},
    ]


def test_lost_tabs_and_cut_rows():
    facts = facts_of(
        read,
        """
         [4mGPU0 GPU1 GPU2 CPU Affinity NUMA Affinity GPU NUMA ID[0m
        GPU0  X  SYS NODE 0-31 0  N/A
        GPU1 SYS  X
        """,
    )
    assert fields_of(facts, "topology_link") == [
        {"machine": 0, "a": "GPU0", "b": "GPU1", "link": "SYS"},
        {"machine": 0, "a": "GPU0", "b": "GPU2", "link": "NODE"},
    ]
    assert fields_of(facts, "topology_device") == [
        {"machine": 0, "name": "GPU0", "cpu_affinity": "0-31", "numa": "0"},
        {"machine": 0, "name": "GPU1"},
    ]
    assert fields_of(facts, "coverage") == []


@pytest.mark.parametrize("text", ["GPU0 X NV4", "GPU0 GPU1", "GPU0 GPU1 is slow\nGPU0 X NV4", "GPU0 CPU\nGPU0 broken"])
def test_no_matrix(text):
    assert facts_of(read, text) == []
