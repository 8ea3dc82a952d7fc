"""The reader of watchdog lines: one fact an operation, whatever the number of ranks and the release's wording."""

from __future__ import annotations

import pytest
from gpurules.probes.readers.watchdog import read

from .support import facts_of, fields_of

OPERATION = "WorkNCCL({}OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000)"
WAITED = "[rank{0}]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation "


def waited(rank: int, seq: str = "SeqNum=31, ") -> str:
    return f"{WAITED.format(rank)}timeout: {OPERATION.format(seq)} ran for 600022 milliseconds before timing out."


@pytest.mark.parametrize(
    ("said", "group"),
    [
        ("[PG 1 Rank 3] Timeout at NCCL work: 31, last enqueued NCCL work: 33, last completed NCCL work: 30.", "1"),
        (
            "[PG 0 (default_pg) Rank 3] Exception (either an error or timeout) detected by watchdog at work: 31, "
            "last enqueued NCCL work: 33, last completed NCCL work: 30.",
            "0",
        ),
        (
            "[PG ID 2 PG GUID 5(tp) Rank 3]  failure detected by watchdog at work sequence id: 31 PG status: last "
            "enqueued work: 33, last completed work: 30",
            "2",
        ),
    ],
)
def test_progress_in_the_wordings_of_releases(said: str, group: str) -> None:
    assert fields_of(facts_of(read, said), "rank_progress") == [
        {"group": group, "at": 31, "enqueued": 33, "completed": 30, "rank": 3, "ranks": 1, "rank_list": "3"}
    ]


def test_ranks_at_one_operation_are_one_fact() -> None:
    text = "\n".join(waited(rank) for rank in (0, 1, 2, 5, 5))
    assert fields_of(facts_of(read, text), "collective") == [
        {
            "seq": 31, "op": "ALLREDUCE", "size": "4096", "timeout_ms": 600000, "rank": 0, "ranks": 4,
            "rank_list": "0-2, 5", "grouped": False,
        }
    ]  # fmt: skip


def test_a_line_without_a_number_is_read() -> None:
    (fact,) = fields_of(facts_of(read, waited(0, "")), "collective")
    assert "seq" not in fact
    assert fact["op"] == "ALLREDUCE"


def test_the_group_comes_from_the_line_beside() -> None:
    said = "[PG 4 Rank 1] Timeout at NCCL work: 31, last enqueued NCCL work: 33, last completed NCCL work: 30."
    (fact,) = fields_of(facts_of(read, f"{waited(0)}\n{waited(1)}\n{said}"), "collective")
    assert (fact["group"], fact["grouped"], fact["rank_list"]) == ("4", True, "0-1")


def test_two_groups_at_one_number_leave_a_rank_without_a_group() -> None:
    end = "at NCCL work: 31, last enqueued NCCL work: 33, last completed NCCL work: 30."
    text = f"{waited(7)}\n[PG 4 Rank 1] Timeout {end}\n[PG 5 Rank 2] Timeout {end}"
    (fact,) = fields_of(facts_of(read, text), "collective")
    assert fact["grouped"] is False


def test_a_flood_of_operations_ends() -> None:
    text = "\n".join(waited(rank, f"SeqNum={rank}, ") for rank in range(500))
    assert len(fields_of(facts_of(read, text), "collective")) == 32
