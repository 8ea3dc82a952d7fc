"""One check, run by the target interpreter: `_child.py ORDER` prints one line of JSON with its result.

May live here: small computations with torch, compared with what they must give. Must not: imports beyond the standard
library and torch, judgement of the machine. Works on every Python that a torch of the catalog runs on.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from typing import Any, Callable  # noqa: UP035, older interpreters run this file

# This folder stands first on the path of a script; nothing of it may stand for a module that torch imports.
if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)):
    del sys.path[0]

RANKS_ON_CPU = 2
MAX_RANKS = 8
ROUNDINGS = 32  # how many units in the last place a result may be off
MIB = 1 << 20
# What NCCL says of each channel: "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM".
TRANSPORT = re.compile(r"\bvia (P2P|SHM|NET)/")


class Told(Exception):
    """Why a check did not pass: the last part of a message's id, and its values."""

    def __init__(self, said: str, **values: Any) -> None:
        super().__init__(said)
        self.said = said
        self.values = values


class Skip(Told):
    """The check has nothing to do here."""


class Wrong(Told):
    """The check gave another result than it must."""


class Given:
    """What a check is given: torch, its order, and where it runs."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.device: str = order["device"]
        self.cuda = self.device.startswith("cuda")

    @property
    def torch(self) -> Any:
        """torch, imported when first needed: a child that only starts others does not wait for it.

        By name: whoever reads this package must not find that it depends on torch.
        """
        return importlib.import_module("torch")

    def wait(self) -> None:
        """Until the device has done all work: its errors come out only then."""
        if self.cuda:
            self.torch.cuda.synchronize(self.device)

    def numbers(self, *shape: int) -> Any:
        """The same random numbers on every machine, on the host in float64."""
        generator = self.torch.Generator().manual_seed(7)
        return self.torch.randn(*shape, generator=generator, dtype=self.torch.float64)

    def near(self, got: Any, wanted: Any, epsilon: float) -> dict[str, Any]:
        """The largest deviation as a share of the largest value; raises Wrong where it is more than rounding."""
        got = got.detach().to("cpu", self.torch.float64)
        error = float((got - wanted).abs().max() / wanted.abs().max())
        if not error <= ROUNDINGS * epsilon:  # also where it is NaN
            raise Wrong("off", error=f"{error:.2g}", limit=f"{ROUNDINGS * epsilon:.2g}")
        return {"error": error}


def available(given: Given) -> dict[str, Any]:
    torch = given.torch
    if not given.cuda:
        return {"threads": torch.get_num_threads()}
    torch.cuda.init()  # says why there is no device, where is_available() only says that there is none
    index = torch.device(given.device).index or 0
    if torch.cuda.device_count() <= index:
        raise Wrong("devices", n=torch.cuda.device_count())
    properties = torch.cuda.get_device_properties(index)
    return {"name": properties.name, "total_mib": properties.total_memory // MIB}


def arch_list(given: Given) -> dict[str, Any]:
    flags = getattr(given.torch._C, "_cuda_getArchFlags", None)
    text = flags() if flags and given.torch.version.cuda else None
    if not text:
        raise Skip("no_gpu_code")
    # The catalog lists device code; code for the driver to compile stands beside it.
    names = sorted((w for w in text.split() if w.startswith("sm_")), key=lambda name: (len(name), name))
    return {"value": " ".join(names), "ptx": " ".join(w for w in text.split() if not w.startswith("sm_"))}


def kernel(given: Given) -> dict[str, Any]:
    total = int((given.torch.arange(1000, device=given.device) * 2 + 1).sum())
    given.wait()
    if total != 1_000_000:
        raise Wrong("sum", total=total)
    return {}


def copy(given: Given) -> dict[str, Any]:
    torch = given.torch
    there = torch.arange(MIB, dtype=torch.int32)
    if given.cuda:
        there = there.pin_memory()
    back = there.to(given.device, non_blocking=True).clone().cpu()
    given.wait()
    if not torch.equal(there, back):
        raise Wrong("copy_changed")
    return {}


def matmul(given: Given) -> dict[str, Any]:
    torch, name = given.torch, given.order["dtype"]
    dtype = getattr(torch, name, None)
    if dtype is None:
        raise Skip("no_dtype", name=name)
    a, b = given.numbers(256, 256), given.numbers(256, 256).t()
    if name == "int8":
        left, right = (m.mul(20).clamp(-127, 127).to(dtype) for m in (a, b))
        got = torch._int_mm(left.to(given.device), right.to(given.device))
        given.wait()
        return given.near(got, left.double() @ right.double(), 0.0)
    left, right = a.to(dtype), b.to(dtype)
    x, y = left.to(given.device), right.to(given.device)
    if name.startswith("float8"):
        if not hasattr(torch, "_scaled_mm"):
            raise Skip("no_float8")
        one = torch.ones((), device=given.device)
        got = torch._scaled_mm(x, y, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        epsilon = torch.finfo(torch.bfloat16).eps
    else:
        got, epsilon = x @ y, torch.finfo(dtype).eps
    given.wait()
    return given.near(got, left.double() @ right.double(), epsilon)


def convolution(given: Given) -> dict[str, Any]:
    torch = given.torch
    torch.backends.cudnn.allow_tf32 = False
    image, weight = given.numbers(2, 8, 32, 32), given.numbers(16, 8, 3, 3)
    got = torch.nn.functional.conv2d(image.float().to(given.device), weight.float().to(given.device), padding=1)
    given.wait()
    wanted = torch.nn.functional.conv2d(image.float().double(), weight.float().double(), padding=1)
    version = torch.backends.cudnn.version() if given.cuda else None
    return {**given.near(got, wanted, torch.finfo(torch.float32).eps), **({"cudnn": version} if version else {})}


def autocast(given: Given) -> dict[str, Any]:
    torch = given.torch
    torch.manual_seed(7)
    model = torch.nn.Linear(64, 64).to(given.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = given.numbers(32, 64).float().to(given.device)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast("cuda" if given.cuda else "cpu", dtype=torch.bfloat16):
            outputs = model(inputs)
            loss = (outputs.float() - inputs).pow(2).mean()
        if outputs.dtype is not torch.bfloat16:
            raise Wrong("layer_dtype", dtype=str(outputs.dtype))
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    given.wait()
    if not (math.isfinite(losses[1]) and losses[1] < losses[0]):
        raise Wrong("loss", before=f"{losses[0]:.4g}", after=f"{losses[1]:.4g}")
    return {}


def memory(given: Given) -> dict[str, Any]:
    torch, share = given.torch, given.order["share"]
    if given.cuda:
        free, _total = torch.cuda.mem_get_info(given.device)
        size = int(free * share)
    else:
        size = min(256, given.order["host_mib"] // 4) * MIB
    block = torch.full((size // 4,), 7, dtype=torch.int32, device=given.device)
    right = int(block[0]) == int(block[-1]) == 7 and int(block[: MIB // 4].sum()) == 7 * (MIB // 4)
    given.wait()
    if not right:
        raise Wrong("memory_lost")
    return {"mib": size // MIB}


def compiled(given: Given) -> dict[str, Any]:
    torch = given.torch
    if not hasattr(torch, "compile"):
        raise Skip("no_compile")
    if not any(map(shutil.which, ("c++", "g++", "clang++", "cl", "gcc"))):
        raise Skip("no_compiler")
    if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
        raise Skip("no_headers")
    if given.cuda and importlib.util.find_spec("triton") is None:
        raise Skip("no_triton")
    inputs = given.numbers(1000).float()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        got = torch.compile(lambda x: (x * 2 + 1).sin() + x)(inputs.to(given.device))
        given.wait()
    wanted = (inputs.double() * 2 + 1).sin() + inputs.double()
    return given.near(got, wanted, torch.finfo(torch.float32).eps)


# --- several devices: on the CPU two processes stand for them -----------------------------------------------------


def count(given: Given) -> int:
    """How many devices take part; raises Skip for a single one."""
    if not given.cuda:
        return RANKS_ON_CPU
    found: int = given.torch.cuda.device_count()
    if found < 2:
        raise Skip("one_gpu")
    return min(found, MAX_RANKS)


def peer_copy(given: Given) -> dict[str, Any]:
    devices = count(given)
    if not given.cuda:
        return ranks(given, devices, "gloo")
    torch = given.torch
    for a in range(devices):
        for b in range(devices):
            there = torch.arange(MIB, dtype=torch.int32, device=f"cuda:{a}")
            back = there.to(f"cuda:{b}").cpu()
            if not torch.equal(back, there.cpu()):
                raise Wrong("peer_changed", a=a, b=b)
    return {"devices": devices}


def topology(given: Given) -> dict[str, Any]:
    devices = count(given)
    if not given.cuda:
        return ranks(given, devices, "gloo")
    reach = given.torch.cuda.can_device_access_peer
    pairs = [(a, b) for a in range(devices) for b in range(devices) if a != b]
    direct = {(a, b) for a, b in pairs if reach(a, b)}
    odd = sorted((a, b) for a, b in direct if (b, a) not in direct)
    if odd:
        raise Wrong("one_way", a=odd[0][0], b=odd[0][1])
    value = "none" if not direct else "all" if len(direct) == len(pairs) else "some"
    return {"value": value, "pairs": len(pairs), "direct": len(direct)}


def all_reduce(given: Given) -> dict[str, Any]:
    devices = count(given)
    if given.cuda and not importlib.import_module("torch.distributed").is_nccl_available():
        raise Wrong("no_nccl")
    return ranks(given, devices, "nccl" if given.cuda else "gloo")


def ranks(given: Given, world: int, backend: str) -> dict[str, Any]:
    """The work of the order in several processes; the first that fails speaks for all."""
    with tempfile.TemporaryDirectory() as folder:
        meeting = os.path.join(folder, "meeting")
        more = {"world": world, "backend": backend, "meeting": meeting}
        talking = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT"} if backend == "nccl" else {}
        # In the process group of this child, so that its limits hold for them too.
        started = [
            subprocess.Popen(
                [sys.executable, "-B", "-W", "ignore", os.path.abspath(__file__),
                 json.dumps({**given.order, **more, "rank": rank})],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={**os.environ, **talking},
            )
            for rank in range(world)
        ]  # fmt: skip
        said = [process.communicate()[0].decode("utf-8", "replace") for process in started]
    for rank, (process, text) in enumerate(zip(started, said)):  # noqa: B905, unknown to older interpreters
        lines = [line for line in text.splitlines() if line.startswith("{")]
        record = json.loads(lines[-1]) if lines else said_by(Wrong("ended", code=process.returncode))
        if record["state"] != "passed":
            raise Wrong("rank", rank=rank, detail=record)
    used = transports(said)
    return {"ranks": world, "backend": backend, **({"value": used} if used else {})}


def transports(logs: list[str]) -> str:
    """The transports of the channels that NCCL's logs name: `P2P`, `NET SHM`; empty where they name none."""
    return " ".join(sorted({found for text in logs for found in TRANSPORT.findall(text)}))


def rank_work(given: Given) -> dict[str, Any]:
    """What one of several processes does."""
    torch, order = given.torch, given.order
    distributed = importlib.import_module("torch.distributed")
    if not distributed.is_available():
        raise Wrong("no_distributed")
    rank, world = order["rank"], order["world"]
    if given.cuda:
        given.device = f"cuda:{rank}"
        torch.cuda.set_device(rank)
    distributed.init_process_group(
        order["backend"], init_method=f"file://{order['meeting']}", rank=rank, world_size=world
    )
    try:
        {"peer_copy": pass_on, "topology": meet, "all_reduce": add_up}[order["work"]](given, distributed)
        given.wait()
    finally:
        distributed.destroy_process_group()
    return {}


def pass_on(given: Given, distributed: Any) -> None:
    rank, world = given.order["rank"], given.order["world"]
    sent = given.torch.full((MIB,), rank, dtype=given.torch.int32)
    got = given.torch.empty_like(sent)
    sending = distributed.isend(sent, (rank + 1) % world)
    distributed.recv(got, (rank - 1) % world)
    sending.wait()
    if not bool((got == (rank - 1) % world).all()):
        raise Wrong("sent_changed")


def meet(given: Given, distributed: Any) -> None:
    rank, world = given.order["rank"], given.order["world"]
    seen = [given.torch.zeros(1, dtype=given.torch.int64) for _ in range(world)]
    distributed.all_gather(seen, given.torch.tensor([rank]))
    if [int(one) for one in seen] != list(range(world)):
        raise Wrong("not_all_seen")


def add_up(given: Given, distributed: Any) -> None:
    rank, world = given.order["rank"], given.order["world"]
    values = given.torch.full((MIB,), float(rank + 1), device=given.device)
    distributed.all_reduce(values)
    wanted = world * (world + 1) / 2
    if not bool((values == wanted).all()):
        raise Wrong("rank_sum", wanted=f"{wanted:g}")


WORK: dict[str, Callable[[Given], dict[str, Any]]] = {
    f.__name__: f
    for f in (
        available, arch_list, kernel, copy, matmul, convolution, autocast, memory, compiled, peer_copy, topology,
        all_reduce,
    )
}  # fmt: skip


def said_by(reason: Told) -> dict[str, Any]:
    """The record of a check that did not pass."""
    return {"state": "skipped" if isinstance(reason, Skip) else "failed", "said": reason.said, "values": reason.values}


def resident_mib() -> int | None:
    """The most main memory that this process has had; None where the system does not tell."""
    try:
        resource: Any = importlib.import_module("resource")
    except ImportError:
        return None
    most: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // (MIB if sys.platform == "darwin" else 1024)


def measuring(given: Given, work: Callable[[Given], dict[str, Any]]) -> dict[str, Any]:
    """What the work measured, with the most memory of the device that it held beside torch itself."""
    torch = given.torch
    before = resident_mib()
    measured = work(given)
    if given.cuda:
        peak = -(-torch.cuda.max_memory_allocated(given.device) // MIB)
    else:
        after = resident_mib()
        peak = None if before is None or after is None else after - before
    return measured if peak is None else {**measured, "peak_mib": peak}


def result(order: dict[str, Any]) -> dict[str, Any]:
    """The record of a check."""
    try:
        given = Given(order)
        if "rank" in order:
            measured = rank_work(given)
        elif order["measured"]:
            measured = measuring(given, WORK[order["work"]])
        else:
            measured = WORK[order["work"]](given)
    except Told as reason:
        return said_by(reason)
    except Exception as error:
        text = " ".join(str(error).split())
        full = isinstance(error, MemoryError) or any(s in text for s in ("out of memory", "not enough memory"))
        raised = {"type": type(error).__name__, "text": text}
        return {"state": "out_of_memory" if full else "failed", "said": "raised", "values": raised}
    value = measured.pop("value", None)
    return {"state": "passed", "measured": measured, **({"value": value} if value else {})}


def end_with(parent: int) -> None:
    """Ends this process once its parent is gone: nobody would stop it any more."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    line = json.dumps(result(json.loads(sys.argv[1])))
    print("\n" + line, flush=True)
    # A library that hangs or crashes on its way out has not failed the check.
    os._exit(0)
