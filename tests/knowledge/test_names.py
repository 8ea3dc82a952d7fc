"""GPU names as drivers print them and as people type them, against the shipped catalog."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from gpurules.knowledge import names as module
from gpurules.knowledge.catalogs import load_catalogs
from gpurules.knowledge.names import GpuName, GpuNames
from gpurules.knowledge.problems import Problems
from gpurules.knowledge.vocabulary import load_vocabulary


@pytest.fixture(scope="module")
def gpus() -> GpuNames:
    knowledge = Path(module.__file__).parent
    problems = Problems()
    catalogs = load_catalogs(knowledge / "facts", load_vocabulary(knowledge / "vocabulary.yaml", problems), problems)
    assert problems.found == []
    return catalogs.gpu_names()


IDENTIFIED = {
    # GeForce, as drivers print it and as people type it
    "NVIDIA GeForce RTX 5090": "GeForce RTX 5090",
    "GeForce RTX 5090": "GeForce RTX 5090",
    "RTX 5090": "GeForce RTX 5090",
    "rtx5090": "GeForce RTX 5090",
    "RTX-5090": "GeForce RTX 5090",
    "nvidia_rtx_5090": "GeForce RTX 5090",
    "GeForce GTX 1080 Ti": "GeForce GTX 1080 Ti",
    "GTX1080Ti": "GeForce GTX 1080 Ti",
    "gtx 1080": "GeForce GTX 1080",
    "GeForce RTX 2070": "GeForce RTX 2070",
    "GeForce RTX 2070 SUPER": "GeForce RTX 2070 SUPER",
    "NVIDIA GTX 1660 Super": "GeForce GTX 1660 SUPER",
    "RTX 4070 Ti Super": "GeForce RTX 4070 Ti SUPER",
    "RTX 3060Ti": "GeForce RTX 3060 Ti",
    "NVIDIA GeForce RTX 4090 D": "GeForce RTX 4090 D",
    "GeForce GTX 750 Ti": "GeForce GTX 750 Ti",
    "GeForce GTX 1050": "GeForce GTX 1050",
    "NVIDIA GeForce MX450": "GeForce MX450",
    "GeForce GT 1030": "GeForce GT 1030",
    # memory sizes
    "2x RTX 3090 24GB": "GeForce RTX 3090",
    "RTX 4060 Ti 16GB": "GeForce RTX 4060 Ti 16GB",
    "RTX 4060Ti 16 GB": "GeForce RTX 4060 Ti 16GB",
    "RTX 4060 Ti 8G": "GeForce RTX 4060 Ti 8GB",
    "GeForce RTX 4060 Ti": "GeForce RTX 4060 Ti",
    "RTX 3060 (12 GB)": "GeForce RTX 3060 12GB",
    "GeForce GTX 1060": "GeForce GTX 1060",
    "GeForce GTX 1060 6GB": "GeForce GTX 1060 6GB",
    "NVIDIA RTX A2000 12GB": "RTX A2000 12GB",
    # laptops
    "NVIDIA GeForce RTX 3050 Laptop GPU": "GeForce RTX 3050 Laptop GPU",
    "GeForce RTX 3050 Mobile": "GeForce RTX 3050 Laptop GPU",
    "GA104M [GeForce RTX 3080 Mobile / Max-Q 8GB/16GB]": "GeForce RTX 3080 Laptop GPU",
    "RTX 4090 laptop": "GeForce RTX 4090 Laptop GPU",
    "NVIDIA GeForce RTX 2070 with Max-Q Design": "GeForce RTX 2070",
    "GP107M [GeForce GTX 1050 Mobile]": "GeForce GTX 1050",
    # Titan
    "TITAN V": "TITAN V",
    "NVIDIA TITAN Xp": "TITAN Xp",
    "TITAN RTX": "TITAN RTX",
    "Titan X (Pascal)": "TITAN X (Pascal)",
    "GeForce GTX TITAN X": "GeForce GTX TITAN X",
    # workstation: three different cards with 6000 in the name
    "Quadro RTX 6000": "Quadro RTX 6000",
    "NVIDIA RTX 6000 Ada Generation": "RTX 6000 Ada Generation",
    "RTX 6000 Ada": "RTX 6000 Ada Generation",
    "RTX PRO 6000 Blackwell": "RTX PRO 6000 Blackwell",
    "RTX PRO 6000": "RTX PRO 6000 Blackwell",
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": "RTX PRO 6000 Blackwell Workstation Edition",
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": "RTX PRO 6000 Blackwell Max-Q Workstation Edition",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "RTX PRO 6000 Blackwell Server Edition",
    "RTX 8000": "Quadro RTX 8000",
    "NVIDIA RTX A6000": "RTX A6000",
    "NVIDIA RTX A5000": "RTX A5000",
    "RTX PRO 4000 Blackwell": "RTX PRO 4000 Blackwell",
    "RTX 4000 Ada": "RTX 4000 Ada Generation",
    "RTX 4000 SFF Ada": "RTX 4000 SFF Ada Generation",
    "Quadro P2000": "Quadro P2000",
    "T400": "T400",
    # data centre
    "Tesla T4": "Tesla T4",
    "T4": "Tesla T4",
    "NVIDIA A10": "A10",
    "16x A10 23GB": "A10",
    "A10G": "A10G",
    "NVIDIA A2": "A2",
    "NVIDIA A40": "A40",
    "L4": "L4",
    "NVIDIA L40": "L40",
    "NVIDIA L40S": "L40S",
    "NVIDIA L20": "L20",
    "Tesla K80": "Tesla K80",
    "Tesla M40": "Tesla M40",
    "Tesla P4": "Tesla P4",
    "P40": "Tesla P40",
    "Tesla P100-PCIE-16GB": "Tesla P100 PCIe 16GB",
    "Tesla V100-PCIE-16GB": "Tesla V100 PCIe 16GB",
    "Tesla V100-SXM2-32GB": "Tesla V100 SXM2 32GB",
    "Tesla V100S-PCIE-32GB": "Tesla V100S PCIe 32GB",
    "V100": "Tesla V100",
    "NVIDIA A100": "A100",
    "A100 80GB": "A100 80GB",
    "A100-SXM4-80GB": "A100 SXM4 80GB",
    "NVIDIA A100-SXM4-40GB": "A100 SXM4 40GB",
    "NVIDIA A100-PCIE-40GB": "A100 PCIe 40GB",
    "NVIDIA A100 80GB PCIe": "A100 PCIe 80GB",
    "NVIDIA A800-SXM4-80GB": "A800 SXM4 80GB",
    "H100": "H100",
    "8x NVIDIA H100 80GB HBM3": "H100 SXM5 80GB",
    "NVIDIA H100 PCIe": "H100 PCIe 80GB",
    "NVIDIA H100 NVL": "H100 NVL 94GB",
    "NVIDIA H200": "H200",
    "NVIDIA H800": "H800",
    "NVIDIA H20": "H20",
    "NVIDIA GH200 480GB": "GH200",
    "NVIDIA B200": "B200",
    "NVIDIA GB200": "GB200",
    "NVIDIA GB300": "GB300",
    "NVIDIA GB10": "GB10",
    "DGX Spark": "GB10",
    # Jetson
    "NVIDIA Thor": "Jetson AGX Thor",
    "Orin": "Jetson Orin",
    "Jetson AGX Orin 64GB": "Jetson AGX Orin 64GB",
    # AMD, Intel, Apple
    "AMD Radeon RX 6700 XT": "Radeon RX 6700 XT",
    "RX6700XT": "Radeon RX 6700 XT",
    "Radeon RX 7900 XTX": "Radeon RX 7900 XTX",
    "AMD Radeon(TM) 8060S Graphics": "Radeon 8060S",
    "AMD Instinct MI300X": "Instinct MI300X",
    "MI250X": "Instinct MI250X",
    "Radeon PRO W7900": "Radeon PRO W7900",
    "Intel(R) Arc(TM) A770 Graphics": "Arc A770",
    "Intel® Arc™ B580": "Arc B580",
    "Apple M1 Pro": "Apple M1 Pro",
    # lspci, with the chip before and the revision after
    "NVIDIA Corporation AD102 [GeForce RTX 4090] (rev a1)": "GeForce RTX 4090",
    "GA102 [GeForce RTX 3080 Lite Hash Rate]": "GeForce RTX 3080",
    "TU102 [GeForce RTX 2080 Ti Rev. A]": "GeForce RTX 2080 Ti",
    # cut by the column width of old nvidia-smi, yet only one product or line is possible
    "Tesla P100-PCIE...": "Tesla P100",
    "NVIDIA A100-SXM...": "A100",
    "NVIDIA H100 80GB H...": "H100 SXM5 80GB",
    "NVIDIA GeForce GTX 1660 S...": "GeForce GTX 1660 SUPER",
    "Quadro RTX 600…": "Quadro RTX 6000",
}

UNKNOWN = (
    "",
    "...",
    "NVIDIA GeForce ...",
    "GeForce RTX 207...",  # 2070 or 2070 SUPER
    "GeForce RTX 208...",
    "GeForce GTX 1080...",  # 1080 or 1080 Ti
    "GeForce RTX 3090...",
    "RTX 6000",  # Turing has a Quadro before it, Ada and Blackwell a word after or within
    "RTX 4000",
    "RTX 5000",
    "TITAN X",  # Maxwell or Pascal
    "RTX 5070 Ti SUPER",  # not a product that is known
    "RTX 3090 SUPER",
    "A100X",
    "L40G",
    "XRTX 4090",
    "A 100 W supply",
    "GA100",
    "sm_100",
    "RTX 5090 and RTX 4090",
    "Navi 31 [Radeon RX 7900 XT/7900 XTX/7900M]",
    "Navi 21 [Radeon RX 6800/6800 XT / 6900 XT]",
    "AMD Radeon Graphics",
    "Device 2684",
    "Graphics Device",
    "llvmpipe (LLVM 15.0.7, 256 bits)",
    "NVIDIA GeForce",
    "A2",
    "M4",
    "显卡",
)


@pytest.mark.parametrize(("text", "product"), IDENTIFIED.items())
def test_identified(gpus: GpuNames, text: str, product: str) -> None:
    assert gpus.identify(text) == product


@pytest.mark.parametrize("text", UNKNOWN)
def test_not_identified(gpus: GpuNames, text: str) -> None:
    assert gpus.identify(text) is None


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("两张RTX 4090", [("GeForce RTX 4090", 2)]),
        ("我有4块A100,想训练70B", [("A100", 4)]),
        ("8卡H800服务器", [("H800", 8)]),
        ("RTX 4090双卡", [("GeForce RTX 4090", 2)]),
        ("双路 RTX 3090 和一张 RTX 4060 Ti 16GB", [("GeForce RTX 3090", 2), ("GeForce RTX 4060 Ti 16GB", 1)]),
        ("2x RTX 3090 24GB", [("GeForce RTX 3090", 2)]),
        ("2xRTX3090", [("GeForce RTX 3090", 2)]),
        ("2 × NVIDIA GeForce RTX 3090", [("GeForce RTX 3090", 2)]),
        ("8x NVIDIA H100 80GB HBM3", [("H100 SXM5 80GB", 8)]),
        ("16x A10 23GB", [("A10", 16)]),
        ("RTX 4090 x2", [("GeForce RTX 4090", 2)]),
        ("RTX 3090 24GB x 4", [("GeForce RTX 3090", 4)]),
        ("L40S * 8", [("L40S", 8)]),
        ("A100x8", [("A100", 8)]),
        ("dual RTX 3090", [("GeForce RTX 3090", 2)]),
        ("a box with 4 RTX 2080 Ti", [("GeForce RTX 2080 Ti", 4)]),
        ("eight NVIDIA H100s", [("H100", 8)]),
        ("four RTX A6000 cards and two TITAN V", [("RTX A6000", 4), ("TITAN V", 2)]),
        ("An RTX 5090 and an RTX 4090 in one box", [("GeForce RTX 5090", 1), ("GeForce RTX 4090", 1)]),
        ("a used RTX 3090 or a new RTX 4060 Ti 16GB?", [("GeForce RTX 3090", 1), ("GeForce RTX 4060 Ti 16GB", 1)]),
        ("torch 2.7 RTX 4090", [("GeForce RTX 4090", 1)]),
        ("on CUDA 12 RTX 4090 fails", [("GeForce RTX 4090", 1)]),
        ("RTX 4090, and later the RTX 4090 again", [("GeForce RTX 4090", 1)]),
        ("The RTX 3090... and then it died", [("GeForce RTX 3090", 1)]),
        ("L2 cache, an M4 Mac, GA102, H264, A1111", []),
        ("no GPU named here", []),
        ("", []),
    ],
)
def test_sentences(gpus: GpuNames, sentence: str, found: list[tuple[str, int]]) -> None:
    assert gpus.find_all(sentence) == found


def test_every_product_is_known_by_its_own_name(gpus: GpuNames) -> None:
    knowledge = Path(module.__file__).parent
    problems = Problems()
    catalogs = load_catalogs(knowledge / "facts", load_vocabulary(knowledge / "vocabulary.yaml", problems), problems)
    products = [str(r["product"]) for r in catalogs.tables()["gpu_model"]]
    assert [p for p in products if gpus.identify(p) != p] == ["A2", "L2"]


def test_a_shared_alias_means_neither() -> None:
    gpus = GpuNames([GpuName("Card One", ("Card",)), GpuName("Card Two", ("Card",))])
    assert [gpus.identify(text) for text in ("Card One", "Card Two", "Card")] == ["Card One", "Card Two", None]


def test_a_products_own_name_goes_before_another_ones_alias() -> None:
    gpus = GpuNames([GpuName("Card One", ("Card Two",)), GpuName("Card Two")])
    assert gpus.identify("Card Two") == "Card Two"


def test_an_alias_goes_before_a_derived_form() -> None:
    gpus = GpuNames([GpuName("GeForce 900"), GpuName("Other Card", ("900",))])
    assert gpus.identify("900") == "Other Card"


@pytest.mark.parametrize("unit", ["RTX 4090 ", "....", "2x", "a100", "rtx rtx ", "8 x NVIDIA ", "一", "(TM)"])
def test_time_grows_with_the_length_only(gpus: GpuNames, unit: str) -> None:
    def seconds(count: int) -> float:
        text = unit * count
        start = time.process_time()
        gpus.identify(text)
        gpus.find_all(text)
        return time.process_time() - start

    # The best of several runs, since a busy machine only adds; ten times the text may take a few tens of times as long
    # (caches), a square would take a hundred.
    short = min(seconds(2_000) for _ in range(5))
    assert min(seconds(20_000) for _ in range(2)) < 60 * max(short, 0.004)
