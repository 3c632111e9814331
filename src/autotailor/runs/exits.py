"""Early exits of a finished run: what they cost, what is chosen for budgets of one's own, and its files."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from autotailor.artifacts import PROVENANCE, read_json, write_json
from autotailor.exits.answers import Answers, Costs
from autotailor.exits.choice import Candidate, Chooser, choose, described, read_limits
from autotailor.exits.files import ASKED, DESCRIPTION, write_description
from autotailor.runs.destination import destination
from autotailor.runs.folder import RunError, RunFolder
from autotailor.runs.known_metric import Estimate
from autotailor.search.budgets import EXPECTED, WORST
from autotailor.serving.files.exits import ANSWERS

FILE, FOLDER, ANSWER = "exits.json", "exits", "export.json"
ON_TEST = "exits.json: thresholds chosen on the validation set, mean over the test set"


@dataclass(frozen=True, eq=False)
class ExitsChoice:
    """What is chosen for a budget: a SubNet, and which pictures leave it where.

    Attributes:
        name: of the export.
        thresholds: of each exit; None where it is not there. Empty where the SubNet without exits is best.
        predicted: accuracy, and the expected and the worst cost, by name.
        leave: share of the test pictures by the exit that answers.
    """

    name: str
    thresholds: Mapping[str, float | None]
    predicted: Mapping[str, Estimate]
    leave: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        predicted = {name: each.to_dict() for name, each in self.predicted.items()}
        return {"name": self.name, "thresholds": self.thresholds, "predicted": predicted, "leave": self.leave}


@dataclass(frozen=True, eq=False)
class KnownExits:
    """The exits of a run.

    Attributes:
        folder: of the run.
        said: the content of ``exits.json``.
    """

    folder: RunFolder
    said: Mapping[str, Any]

    @classmethod
    def of(cls, folder: RunFolder) -> KnownExits | None:
        """Those of a run; None where it has none, or where what they were made for has changed since."""
        path, record = folder.path / FILE, folder.path / PROVENANCE / FILE
        if not path.is_file():
            return None
        now = folder.provenance.inputs
        made_from = read_json(record)["inputs"] if record.is_file() else {}
        is_current = all(now.get(name, digest) == digest for name, digest in made_from.items())
        return cls(folder, read_json(path)) if is_current else None

    @property
    def cost(self) -> str:
        """The name of what exits save: ``latency`` on a device."""
        return self.folder.cost.name

    def estimates(self, exports: Sequence[str]) -> dict[str, Estimate]:
        """The expected and the worst cost of exports, and their accuracy, at each budget for which one is chosen.

        Where budgets share thresholds, the tightest one is named.
        """
        chosen: dict[str, Mapping[str, Any]] = {}
        for budget, row in self.said["budgets"].items():
            own = row["with"]
            if (
                own
                and own["name"] in exports
                and own["thresholds"] not in [each["thresholds"] for each in chosen.values()]
            ):
                chosen[budget] = own
        return {
            f"{name} at {budget}": estimate
            for budget, own in chosen.items()
            if own["thresholds"]
            for name, estimate in self._estimates(own).items()
        }

    def _estimates(self, own: Mapping[str, Any]) -> dict[str, Estimate]:
        """Of one choice, as ``exits.choice.described`` says it."""
        unit, source = self.said["unit"], f"{ON_TEST}; costs {self.said.get('costs', 'of segments and heads')}"
        found = {
            f"{self.cost}.{EXPECTED}": Estimate(own["expected"], unit, None, source),
            f"{self.cost}.{WORST}": Estimate(own["worst"], unit, None, source),
            "accuracy": Estimate(own["accuracy"], "%", own["accuracy_error"], ON_TEST),
        }
        for name, value in (own.get("energy") or {}).items():
            found[f"energy.{name}"] = Estimate(value, "mJ", None, f"{ON_TEST}; costs predicted by lut.csv")
        return found

    def choose(self, expected: float | str | None = None, worst: float | str | None = None) -> ExitsChoice:
        """The most accurate export with its exits and thresholds within budgets, by folds of the validation set.

        Args:
            expected: budget of the mean cost of a picture, in the run's unit, or a share of what the costliest export
                takes without exits, such as ``"60%"``; None: there is none.
            worst: the same of the picture that costs most.

        Raises:
            RunError: nothing keeps the budgets.
            SearchError: a budget is none.
        """
        candidates, groups = self._candidates()
        largest = max(each.costs.whole for each in candidates)
        asked = {key: budget for key, budget in ((EXPECTED, expected), (WORST, worst)) if budget is not None}
        limits = read_limits(asked, largest, self.said["unit"])
        both = [*candidates, *(each.alone for each in candidates if each.exits)]
        found = choose([Chooser(each, groups["validation"], limits[1]) for each in both], limits[0])
        if found is None:
            least = min(each.costs.reach([True] * len(each.exits))[0] for each in candidates)
            costs = {EXPECTED: f"an expected cost of {limits[0]:.4g}", WORST: f"a worst cost of {limits[1]:.4g}"}
            kept = " and ".join(costs[key] for key in asked)
            raise RunError(
                f"no export of {self.folder.path} keeps {kept} {self.said['unit']}; the first answer of all takes "
                f"{least:.4g}: allow more"
            )
        own = described(found, groups["test"])
        return ExitsChoice(own["name"], own["thresholds"], self._estimates(own), own["leave"])

    def export(
        self, folder: str | Path, expected: float | str | None = None, worst: float | str | None = None
    ) -> ExitsChoice:
        """Copies the files of what ``choose`` finds into a folder, with its thresholds in ``exits.json`` (``ASKED``).

        Where the SubNet without exits is best, the files are those of the export.

        Args:
            folder: new or empty.
            expected: see ``choose``.
            worst: see ``choose``.

        Raises:
            RunError: see ``choose``; the folder holds something, or the run lacks the files.
        """
        found = self.choose(expected, worst)
        source = self.folder.path / (FOLDER if found.thresholds else "exports") / found.name
        if not source.is_dir():
            raise RunError(f"{source} is missing; run autotailor again in {self.folder.root}")
        question = {"run": self.folder.provenance.key, EXPECTED: expected, WORST: worst}
        with destination(folder, question) as place:
            shutil.copytree(source, place.files, ignore=shutil.ignore_patterns(ANSWERS), dirs_exist_ok=True)
            if found.thresholds:
                description = read_json(place.files / DESCRIPTION)
                budgets = description["budgets"] | {ASKED: _said(found)}
                write_description(place.files, description | {"budgets": budgets})
            write_json(place.files / ANSWER, {**found.to_dict(), "asked": {EXPECTED: expected, WORST: worst}})
            place.finish()
        return found

    def _candidates(self) -> tuple[list[Candidate], dict[str, Any]]:
        """The exports with what their exits answer, and the base picture of each picture by set."""
        found, groups = [], dict[str, Any]()
        for name, each in self.said["networks"].items():
            path = self.folder.path / FOLDER / name / ANSWERS
            if not path.is_file():
                raise RunError(f"{path} is missing; run the rule exits again (--forcerun exits)")
            with np.load(path) as arrays:
                seen, tested = (
                    Answers(arrays[f"{split}_confidence"], arrays[f"{split}_right"]) for split in ("validation", "test")
                )
                groups = {split: arrays[f"{split}_groups"] for split in ("validation", "test")}
            costs, energy = (_costs(part) for part in (each, each.get("energy")))
            assert costs is not None
            found.append(Candidate(name, tuple(each["exits"]), costs, seen, tested, energy))
        return found, groups


def _said(found: ExitsChoice) -> dict[str, Any]:
    """A choice as ``exits.json`` has it, in plain numbers."""
    numbers = {name.rpartition(".")[2]: each.value for name, each in found.predicted.items() if "energy" not in name}
    return {"name": found.name, "thresholds": found.thresholds, "leave": found.leave, **numbers}


def _costs(said: Mapping[str, Any] | None) -> Costs | None:
    return Costs(tuple(said["segments"]), tuple(said["heads"])) if said else None
