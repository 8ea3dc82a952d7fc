"""Which torch to install: the picks of the build-selection rules in words.

May live here: reading picks, strikes and their reasons from the working memory. Must not: the choice itself (rules),
versions or URLs.
"""

from __future__ import annotations

from collections.abc import Mapping

from .. import __version__
from ..facts import Scalar
from ..report.messages import Words
from ..report.model import Alternative, Change, Lang, NoBuild, Reason, RecommendResult
from ..report.quoting import quoted
from . import installing
from .diagnosis import Diagnosis
from .session import Session

Fields = Mapping[str, Scalar]
# The modes of picks that take a change, fewer changes first, and what has to change in each.
_MODES: Mapping[str, tuple[str, ...]] = {
    "any_driver": ("driver",),
    "any_python": ("python",),
    "any_torch": ("torch",),
    "any_both": ("driver", "python"),
    "any_torch_driver": ("torch", "driver"),
    "any_torch_python": ("torch", "python"),
    "any_all": ("torch", "driver", "python"),
}
# By accelerator, what torch calls the device: ROCm builds keep the name cuda.
_DEVICES = {"cuda": "cuda", "rocm": "cuda", "xpu": "xpu", "mps": "mps"}


class Selection:
    """Builds the recommendation of one session."""

    def __init__(self, session: Session, lang: Lang) -> None:
        self.session = session
        self.lang = lang
        self.words = Words(lang)
        self.diagnosis = Diagnosis(session, lang)
        self.picks = {str(f["mode"]): f for i in session.memory.of_type("pick") if (f := session.fields(i))}

    def result(self) -> RecommendResult:
        """The best build as things are, or plainly none with what would have to change."""
        pick = None if self._unnamed_gpu() else self.picks.get("as_is")
        common: dict[str, object] = {
            "schema": "gpurules.recommend/1",
            "version": __version__,
            "knowledge_version": self.session.knowledge.version,
            "lang": self.lang,
            "platform": self.diagnosis.platform(),
            "assumptions": self.diagnosis.assumptions(),
        }
        if pick is None:
            none = self.nothing()
            common |= {} if self._unnamed_gpu() else {"struck": self.struck(), "alternatives": self.alternatives(None)}
            return RecommendResult.model_validate({**common, "summary": none.reason, "none": none})
        return RecommendResult.model_validate(
            {
                **common,
                "summary": self.words("recommend.summary", torch=installing.version(pick, "torch")),
                "index_url": pick["index_url"],
                "index": pick["variant"],
                "torch": pick["torch"],
                "packages": installing.packages(self.session, pick),
                "commands": installing.commands(self.session, pick),
                "confirmed": bool(pick["confirmed"]),
                "reasons": self.reasons(pick),
                "struck": self.struck(),
                "alternatives": self.alternatives(pick),
                "verify": self.verify(pick),
            }
        )

    def _unnamed_gpu(self) -> bool:
        """Whether CUDA builds are in question, but for no GPU whose compute capability is known."""
        memory = self.session.memory
        cuda = any("cuda" in self.session.fields(i) for i in memory.of_type("candidate"))
        return cuda and not memory.of_type("gpu_arch")

    def reasons(self, pick: Fields) -> tuple[Reason, ...]:
        """Why this build: its kernels, the driver and the ranking."""
        lines: dict[str, Reason] = {}
        for type_name in ("runs_on", "pick"):
            for row in self.session.rows(type_name, build=str(pick["build"])):
                firing = self.session.because(row)
                if firing is None or (type_name == "pick" and self.session.fields(row)["mode"] != "as_is"):
                    continue
                text = self.session.rule_text(firing.rule, "because", self.session.bindings(firing), self.lang)
                places = self.session.places(row)
                where = str(places[0]) if places and type_name == "runs_on" else None
                lines.setdefault(text, Reason(text=text, where=where))
        driver = self.driver_need(pick)
        if driver:
            lines[driver] = Reason(text=driver)
        if not pick["confirmed"]:
            text = self.words("recommend.unconfirmed")
            lines[text] = Reason(text=text)
        return tuple(lines.values())

    def driver_need(self, pick: Fields) -> str | None:
        """What driver the build needs on these GPUs, where that is known: the greatest demand of all."""
        if "cuda" not in pick:
            return None
        ptx = self._ptx_driver(str(pick["build"]))
        if ptx is not None:
            return self.words("recommend.ptx_need", driver=ptx)
        system = self._driver_system()
        for row in self.session.memory.of_type("cuda_release"):
            fields = self.session.fields(row)
            if fields.get("cuda") == pick["cuda"] and f"min_driver_{system}" in fields:
                least = str(fields[f"min_driver_{system}"])
                return self._gpu_driver_need(least) or self.words(
                    "recommend.driver_need", cuda=fields["cuda"], driver=least
                )
        return None

    def _gpu_driver_need(self, least: str) -> str | None:
        """The driver branch that the newest GPU needs, where that is newer than what the build asks for."""
        first = {str(f["name"]): branch for f in self._gpus() if (branch := self._first_branch(f["sm"]))}
        name = max(first, key=lambda n: first[n], default=None)
        if name is None or first[name] <= int(least.partition(".")[0]):
            return None
        return self.words("recommend.gpu_driver_need", gpu=name, driver=first[name])

    def _gpus(self) -> list[Fields]:
        return [self.session.fields(i) for i in self.session.memory.of_type("gpu_arch")]

    def _first_branch(self, sm: Scalar) -> int:
        """The first driver branch that knows a compute capability; 0 where that is not known."""
        rows = self.session.rows("architecture", sm=sm)
        return int(self.session.fields(rows[0]).get("first_driver", 0)) if rows else 0

    def _ptx_driver(self, build: str) -> Scalar | None:
        """The driver that would compile the build's PTX, where some GPU can run nothing else of it."""
        for row in self.session.rows("ptx_fits", build=build):
            fields = self.session.fields(row)
            if not self.session.rows("runs_on", build=build, sm=fields["sm"]):
                return fields["driver"]
        return None

    def _driver_system(self) -> str:
        return "windows" if self.diagnosis.platform() in ("windows", "wsl") else "linux"

    def verify(self, pick: Fields) -> str | None:
        """A command that runs a kernel, for a build with an accelerator."""
        accelerator = self.session.fields(self.session.rows("torch_build", build=str(pick["build"]))[0])["accelerator"]
        device = _DEVICES.get(str(accelerator))
        where = f", device='{device}'" if device else ""
        code = f"import torch; print(torch.ones(1{where}))"
        return quoted(["python", "-c", code], "any")

    def struck(self) -> tuple[Reason, ...]:
        """Why the newest builds were struck out: one line a reason, the best build of each."""
        memory = self.session.memory
        candidates = [self.session.fields(i) for i in memory.of_type("candidate")]
        ranks = {str(f["build"]): int(f["rank"]) for f in candidates}
        floor = max((ranks.get(str(p["build"]), 0) for p in self.picks.values() if p["mode"] == "as_is"), default=0)
        best: dict[str, tuple[int, int]] = {}
        for row in memory.of_type("strike"):
            fields = self.session.fields(row)
            rank, reason = ranks.get(str(fields["build"]), 0), str(fields["reason"])
            if rank >= floor and (reason not in best or rank > best[reason][0]):
                best[reason] = rank, row
        return tuple(Reason(text=self._strike_text(row)) for _, row in sorted(best.values(), reverse=True))

    def _strike_text(self, row: int) -> str:
        build = str(self.session.fields(row)["build"]).partition("@")[0]
        firing = self.session.because(row)
        if firing is None:
            return build
        text = self.session.rule_text(firing.rule, "because", self.session.bindings(firing), self.lang)
        return f"{build}: {text}"

    def alternatives(self, pick: Fields | None) -> tuple[Alternative, ...]:
        """Better builds that a change of driver, Python or the user's wish would allow."""
        shown: dict[str, Alternative] = {}
        for mode in _MODES:
            other = self.picks.get(mode)
            if other is None or (pick is not None and other["build"] == pick["build"]) or str(other["build"]) in shown:
                continue
            shown[str(other["build"])] = Alternative(
                torch=str(other["torch"]),
                index=str(other["variant"]),
                index_url=str(other["index_url"]),
                packages=installing.packages(self.session, other),
                commands=installing.commands(self.session, other),
                reason=self.words(f"recommend.{mode}", better=self._better(other, pick)),
                needs=" · ".join(c.text for c in self.changes(other, mode)),
            )
        return tuple(shown.values())

    def _better(self, other: Fields, pick: Fields | None) -> str:
        """In what a build ranks before the pick."""
        if pick is None:
            return self.words("recommend.better_works")
        if other["confirmed"] and not pick["confirmed"]:
            return self.words("recommend.better_confirmed")
        newer = other["torch"] != pick["torch"]
        return self.words("recommend.better_newer") if newer else self.words("recommend.better_preferred")

    def changes(self, pick: Fields, mode: str) -> list[Change]:
        """What has to change for a build to run."""
        changes = []
        if "torch" in _MODES[mode]:
            torch = installing.version(pick, "torch")
            text = self.words("recommend.change_torch", torch=torch)
            changes.append(Change(what="torch", to=str(pick["torch"]), text=text))
        target, need = self._target_driver(), self.driver_need(pick)
        if "driver" in _MODES[mode] and target and need:
            text = self.words("recommend.change_driver", need=need, branch=target)
            changes.append(Change(what="driver", to=target, text=text))
        if "python" in _MODES[mode]:
            low, high = self._python_range(pick)
            text = self.words("recommend.change_python", low=low, high=high)
            changes.append(Change(what="python", to=high, text=text))
        return changes

    def _target_driver(self) -> str | None:
        """The newest maintained branch for the GPUs, else the newest there was."""
        for type_name in ("driver_target", "driver_newest"):
            for row in self.session.memory.of_type(type_name):
                return str(self.session.fields(row)["branch"])
        return None

    def _python_range(self, pick: Fields) -> tuple[str, str]:
        for row in self.session.memory.of_type("torch_build"):
            fields = self.session.fields(row)
            if fields["build"] == pick["build"]:
                return str(fields["python_min"]), str(fields["python_max"])
        return "?", "?"

    def nothing(self) -> NoBuild:
        """Why no build runs, and what would have to change."""
        if self._unnamed_gpu():
            return self._no_build("recommend.none_unnamed_gpu", "gpu", "recommend.change_tell_gpu", "nvidia-smi")
        for mode in _MODES:
            other = self.picks.get(mode)
            if other is not None:
                changes = tuple(self.changes(other, mode))
                return NoBuild(reason=self.words(f"recommend.none_{mode}"), changes=changes)
        candidates = {str(self.session.fields(i)["build"]) for i in self.session.memory.of_type("candidate")}
        if candidates and candidates <= self._struck_by("library"):
            return self._no_build("recommend.none_library", "system", "recommend.change_library")
        if candidates:
            return self._no_build("recommend.none_card", "card", "recommend.change_card")
        memory = self.session.memory
        strange = memory.of_type("processor_known") and not memory.of_type("platform")
        if strange or memory.of_type("gpu_arch") or memory.of_type("gpu_vendor"):
            return self._no_build("recommend.none_platform", "system", "recommend.change_system")
        return self._no_build("recommend.none_unknown_gpu", "gpu", "recommend.change_tell_gpu", "nvidia-smi")

    def _struck_by(self, kind: str) -> set[str]:
        """The builds that a strike of that kind hits."""
        return {str(self.session.fields(i)["build"]) for i in self.session.rows("strike", kind=kind)}

    def _no_build(self, reason: str, what: str, change: str, command: str | None = None) -> NoBuild:
        changed = Change(what=what, text=self.words(change), command=command)
        return NoBuild(reason=self.words(reason), changes=(changed,))
