"""NCCL logs."""

from __future__ import annotations

import pytest
from gpurules.probes.readers.nccl_log import read

from .support import facts_of, fields_of


def test_info_log_over_infiniband():
    facts = facts_of(
        read,
        """
        #  Rank  0 Group  0 Pid  811 on     nodeA device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
        #  Rank  1 Group  0 Pid  811 on     nodeA device  1 [0000:43:00] NVIDIA H100 80GB HBM3
        #  Rank  2 Group  0 Pid  922 on     nodeB device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
        nodeA:811:811 [0] NCCL INFO Bootstrap: Using ens3:10.1.2.3<0>
        nodeA:811:811 [0] NCCL INFO cudaDriverVersion 12080
        nodeA:811:811 [0] NCCL INFO NCCL version 2.26.2+cuda12.8
        nodeA:811:830 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5_4.
        nodeA:811:830 [0] NCCL INFO NET/IB : Using [0]mlx5_4:1/IB [1]mlx5_5:1/IB [RO]; OOB ens3:10.1.2.3<0>
        nodeA:811:830 [0] NCCL INFO NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_4'
        nodeA:811:830 [0] NCCL INFO Using network IB
        nodeA:811:830 [0] NCCL INFO comm 0x5 rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0
        nodeA:811:830 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 1, bw 40.0/40.0, type NVL/PXB, sameChannels 1
        """,
    )
    assert fields_of(facts, "nccl") == [
        {
            "version": "2.26.2",
            "cuda": "12.8",
            "interface": "ens3",
            "transport": "IB",
            "gdr": "GPU Direct RDMA Enabled",
            "path_type": "NVL/PXB",
            "ranks": 4,
            "nodes": 2,
        }
    ]
    assert fields_of(facts, "driver") == [{"vendor": "nvidia", "cuda_level": 12080}]
    assert fields_of(facts, "nccl_net_device") == [{"name": "mlx5_4:1/IB"}, {"name": "mlx5_5:1/IB"}]
    assert fields_of(facts, "env_var") == [{"name": "NCCL_IB_HCA", "value": "mlx5_4"}]
    assert fields_of(facts, "gpu") == [
        {"index": 0, "name": "NVIDIA H100 80GB HBM3", "vendor": "nvidia", "bus_id": "0000:1b:00"},
        {"index": 1, "name": "NVIDIA H100 80GB HBM3", "vendor": "nvidia", "bus_id": "0000:43:00"},
    ]


@pytest.mark.parametrize(
    ("via", "channel"),
    [
        ("P2P/IPC", "P2P/IPC"),
        ("P2P/direct pointer", "P2P/direct"),
        ("SHM/direct/direct", "SHM/direct"),
        ("SHM", "SHM"),
        ("NET/IB/0/GDRDMA", "NET/IB"),
    ],
)
def test_what_the_first_channel_goes_by(via, channel):
    line = f"nodeA:811:830 [0] NCCL INFO Channel 00/0 : 0[1b000] -> 1[43000] via {via}"
    assert fields_of(facts_of(read, line), "nccl") == [{"channel": channel}]


def test_socket_fallback():
    facts = facts_of(
        read,
        """
        node0:9:9 [0] NCCL INFO NET/IB : No device found.
        node0:9:9 [0] NCCL INFO NET/Socket : Using [0]bond0:10.0.0.9<0> [1]eth1:10.0.1.9<0>
        """,
    )
    assert fields_of(facts, "nccl") == [{"interface": "bond0", "transport": "Socket"}]


def test_version_in_an_error_and_a_launcher():
    facts = facts_of(
        read,
        """
        srun: job 42 has been allocated resources
        torch.distributed.DistBackendError: NCCL error in: x.cpp:1275, unhandled cuda error, NCCL version 2.14.3
        NET/OFI Initializing aws-ofi-nccl 1.9.1-aws NCCL
        """,
    )
    assert fields_of(facts, "nccl") == [{"version": "2.14.3", "plugin": "aws-ofi-nccl"}]
    assert fields_of(facts, "job") == [{"scheduler": "srun"}]


@pytest.mark.parametrize(
    "text", ["NCCL version", "NCCL WARN something failed", "Rank 0 of 4", "nvidia-nccl-cu12==2.20.5", "nranks 4"]
)
def test_nothing_stated(text):
    assert facts_of(read, text) == []
