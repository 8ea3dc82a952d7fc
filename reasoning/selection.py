"""Which torch to install: the picks of the build-selection rules in words.

May live here: reading picks, strikes and their reasons from the working memory. Must not: the choice itself (rules),
versions or URLs.
"""

from __future__ import annotations

from collections.abc import Mapping

from .. import __version__
from ..facts import Scalar
from ..report.messages import Words
from ..report.model import Alternative, Change, NoBuild, Reason, RecommendResult
from .diagnosis import Diagnosis
from .fixes import quoted
from .session import Session

Fields = Mapping[str, Scalar]
_MODES = ("any_driver", "any_python", "any_both")


class Selection:
    """Builds the recommendation of one session."""

    def __init__(self, session: Session, lang: str) -> None:
        self.session = session
        self.lang = lang
        self.words = Words(lang)  # type: ignore[arg-type]
        self.diagnosis = Diagnosis(session, lang)
        self.picks = {str(f["mode"]): f for i in session.memory.of_type("pick") if (f := session.fields(i))}

    def result(self) -> RecommendResult:
        """The best build as things are, or plainly none with what would have to change."""
        pick = self.picks.get("as_is")
        common = {
            "schema": "gpurules.recommend/1",
            "version": __version__,
            "knowledge_version": self.session.knowledge.version,
            "lang": self.lang,
            "platform": self._platform(),
            "assumptions": self.diagnosis._assumptions(),
            "struck": self.struck(),
            "alternatives": self.alternatives(pick),
        }
        if pick is None:
            none = self.nothing()
            return RecommendResult.model_validate({**common, "summary": none.reason, "none": none})
        packages = self.packages(pick)
        return RecommendResult.model_validate(
            {
                **common,
                "summary": self.words("recommend.summary", torch=f"{pick['torch']}+{pick['variant']}"),
                "index_url": pick["index_url"],
                "index": pick["variant"],
                "torch": pick["torch"],
                "packages": packages,
                "commands": self.commands(pick, packages),
                "confirmed": bool(pick["confirmed"]),
                "reasons": self.reasons(pick),
                "verify": self.verify(pick),
            }
        )

    def packages(self, pick: Fields) -> dict[str, str]:
        """The pinned torch and the companions that are installed."""
        installed = {str(self.session.fields(i)["name"]) for i in self.session.memory.of_type("package")}
        packages = {"torch": f"=={self._version(pick, 'torch')}"}
        if "torchvision" in installed and "torchvision" in pick:
            packages["torchvision"] = f"=={self._version(pick, 'torchvision')}"
        if "torchaudio" in installed and "torchaudio" in pick:
            packages["torchaudio"] = f"=={pick['torchaudio']}"
        return packages

    def _version(self, pick: Fields, name: str) -> str:
        """The version with the variant's local part, where the index's wheels carry one."""
        local = "" if self._local(pick) is None else f"+{self._local(pick)}"
        return f"{pick[name]}{local}"

    def _local(self, pick: Fields) -> str | None:
        """The local version of the wheels: on macOS they carry none."""
        return None if str(pick["build"]).endswith("@macos-arm64") else str(pick["variant"])

    def commands(self, pick: Fields, packages: Mapping[str, str]) -> dict[str, str]:
        """The pip and uv command lines."""
        specs = [f"{name}{spec}" for name, spec in packages.items()]
        index = ["--index-url", str(pick["index_url"])]
        force = self._same_public(pick)
        return {
            "pip": quoted(["pip", "install", *(["--force-reinstall"] if force else []), *specs, *index], "any"),
            "uv": quoted(["uv", "pip", "install", *(["--reinstall"] if force else []), *specs, *index], "any"),
        }

    def _same_public(self, pick: Fields) -> bool:
        installs = [self.session.fields(i) for i in self.session.memory.of_type("torch_install")]
        return any(f.get("version__public") == pick["torch"] and f.get("version__local") != pick["variant"] for f in installs)

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
                lines.setdefault(text, Reason(text=text, where=str(places[0]) if places and type_name == "runs_on" else None))
        driver = self.driver_need(pick)
        if driver:
            lines[driver] = Reason(text=driver)
        if not pick["confirmed"]:
            text = self.words("recommend.unconfirmed")
            lines[text] = Reason(text=text)
        return tuple(lines.values())

    def driver_need(self, pick: Fields) -> str | None:
        """What driver the build needs, where that is known."""
        if "cuda" not in pick:
            return None
        system = self._driver_system()
        for row in self.session.memory.of_type("cuda_release"):
            fields = self.session.fields(row)
            if fields.get("cuda") == pick["cuda"] and f"min_driver_{system}" in fields:
                return self.words("recommend.driver_need", cuda=fields["cuda"], driver=fields[f"min_driver_{system}"])
        return None

    def _driver_system(self) -> str:
        return "windows" if self._platform() in ("windows", "wsl") else "linux"

    def _platform(self) -> str | None:
        return self.diagnosis._platform()

    def verify(self, pick: Fields) -> str | None:
        """A command that runs a kernel, for a build with an accelerator."""
        code = "import torch; print(torch.ones(1, device='cuda'))" if "cuda" in pick or "rocm" in str(pick["variant"]) else "import torch; print(torch.ones(1))"
        return quoted(["python", "-c", code], "any")

    def struck(self) -> tuple[Reason, ...]:
        """Why the newest builds were struck out: one line a reason, the best build of each."""
        best: dict[str, tuple[int, str]] = {}
        ranks = {str(self.session.fields(i)["build"]): int(self.session.fields(i)["rank"]) for i in self.session.memory.of_type("candidate")}
        floor = max((ranks.get(str(p["build"]), 0) for p in self.picks.values() if p["mode"] == "as_is"), default=0)
        for row in self.session.memory.of_type("strike"):
            fields = self.session.fields(row)
            build, reason = str(fields["build"]), str(fields["reason"])
            firing = self.session.because(row)
            if firing is None or ranks.get(build, 0) < floor:
                continue
            text = self.session.rule_text(firing.rule, "because", self.session.bindings(firing), self.lang)
            if reason not in best or ranks[build] > best[reason][0]:
                best[reason] = (ranks[build], f"{build.partition('@')[0]}: {text}")
        return tuple(Reason(text=text) for _, text in sorted(best.values(), reverse=True))

    def alternatives(self, pick: Fields | None) -> tuple[Alternative, ...]:
        """Better builds that a change of driver or Python would allow."""
        shown: dict[str, Alternative] = {}
        for mode in _MODES:
            other = self.picks.get(mode)
            if other is None or (pick is not None and other["build"] == pick["build"]) or str(other["build"]) in shown:
                continue
            packages = self.packages(other)
            shown[str(other["build"])] = Alternative(
                torch=str(other["torch"]),
                index=str(other["variant"]),
                index_url=str(other["index_url"]),
                packages=packages,
                commands=self.commands(other, packages),
                reason=self.words(f"recommend.{mode}"),
                needs=" · ".join(c.text for c in self.changes(other, mode)),
            )
        return tuple(shown.values())

    def changes(self, pick: Fields, mode: str) -> list[Change]:
        """What has to change for a build to run."""
        changes = []
        if mode in ("any_driver", "any_both"):
            target = self._target_driver()
            need = self.driver_need(pick)
            if target and need:
                changes.append(Change(what="driver", to=target, text=self.words("recommend.change_driver", need=need, branch=target)))
        if mode in ("any_python", "any_both"):
            low, high = self._python_range(pick)
            changes.append(Change(what="python", to=high, text=self.words("recommend.change_python", low=low, high=high)))
        return changes

    def _target_driver(self) -> str | None:
        found = [str(self.session.fields(i)["branch"]) for i in self.session.memory.of_type("driver_target")]
        return found[0] if found else None

    def _python_range(self, pick: Fields) -> tuple[str, str]:
        for row in self.session.memory.of_type("torch_build"):
            fields = self.session.fields(row)
            if fields["build"] == pick["build"]:
                return str(fields["python_min"]), str(fields["python_max"])
        return "?", "?"

    def nothing(self) -> NoBuild:
        """Why no build runs, and what would have to change."""
        for mode in _MODES:
            other = self.picks.get(mode)
            if other is not None:
                changes = self.changes(other, mode)
                return NoBuild(reason=self.words(f"recommend.none_{mode}"), changes=tuple(changes))
        if self.session.memory.of_type("candidate"):
            if not self._target_driver() and self.session.memory.of_type("gpu_arch"):
                return NoBuild(reason=self.words("recommend.none_card"), changes=(Change(what="card", text=self.words("recommend.change_card")),))
            return NoBuild(reason=self.words("recommend.none_card"), changes=(Change(what="card", text=self.words("recommend.change_card")),))
        if self.session.memory.of_type("gpu_arch") or self.session.memory.of_type("gpu_vendor"):
            return NoBuild(reason=self.words("recommend.none_platform"), changes=(Change(what="system", text=self.words("recommend.change_system")),))
        return NoBuild(reason=self.words("recommend.none_unknown_gpu"), changes=(Change(what="gpu", text=self.words("recommend.change_tell_gpu"), command="nvidia-smi"),))
