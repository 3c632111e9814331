"""Finds the SubNet that a question names: by the name of an export, by its id, as a file, or as an assignment."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from autotailor.artifacts import read_json
from autotailor.ir.errors import AutoTailorError
from autotailor.ir.space.subnet import SubNet, largest, smallest
from autotailor.ir.space.variable import Space
from autotailor.runs.folder import RunError, RunFolder

Which = SubNet | str | Path | Mapping[str, Any]
TABLES = ("pareto.csv", "candidates.csv", "accuracy_validation.csv")
"""Artifacts with the columns ``subnet`` (id) and ``assignment`` (JSON)."""


class Subnets:
    """The SubNets that a run knows.

    Args:
        folder: of the run.
        space: of the run's SuperNet.

    Attributes:
        exported: name of each export to its SubNet, ``largest`` first.
    """

    def __init__(self, folder: RunFolder, space: Space) -> None:
        self._folder, self._space = folder, space
        assignments = read_json(folder.file("polish.json"))["subnets"]
        self.exported = {name: SubNet.from_assignment(space, value) for name, value in assignments.items()}

    def find(self, which: Which) -> SubNet:
        """The SubNet that a question names.

        Args:
            which: a SubNet of this space; the name of an export, ``largest`` or ``smallest``; the id of a SubNet of
                the run's tables; a file, such as ``subnet.json`` of an export; an assignment, or its JSON.

        Raises:
            RunError: there is no such SubNet, or it is not one of this run's space.
        """
        if isinstance(which, SubNet):
            if which.space != self._space:
                raise RunError(
                    f"SubNet {which.id}: it belongs to another space than the run {self._folder.path}; ask about a "
                    "SubNet of this run's network (run.net)"
                )
            return which
        if isinstance(which, Mapping):
            return self._read(which, "assignment")
        if not isinstance(which, str | os.PathLike):
            raise RunError(
                f"SubNet {which!r}: expected a SubNet, a name such as 'largest', an id, a file or an assignment, not "
                f"{type(which).__name__}; the run {self._folder.path} has the exports {', '.join(self.exported)}"
            )
        named = {"smallest": smallest(self._space), "largest": largest(self._space), **self.exported}
        if str(which) in named:
            return named[str(which)]
        if str(which).lstrip().startswith("{"):
            return self._read(_content(str(which), "assignment"), "assignment")
        if os.path.isfile(which):  # noqa: PTH113 - a name too long for a file is no error here
            return self._read(_content(_text(Path(which)), str(which)), str(which))
        return self._of_tables(str(which), tuple(named))

    def _of_tables(self, which: str, names: tuple[str, ...]) -> SubNet:
        for table in TABLES:
            rows = pd.read_csv(self._folder.file(table), dtype={"subnet": str, "assignment": str})
            assignments = rows.loc[rows["subnet"] == which, "assignment"]
            if len(assignments):
                return SubNet.from_json(self._space, assignments.iloc[0])
        raise RunError(
            f"SubNet {which!r}: the run {self._folder.path} has no SubNet and there is no file of this name; known "
            f"are {', '.join(names)}, the ids in {', '.join(TABLES)}, and files such as exports/largest/subnet.json"
        )

    def _read(self, content: Mapping[str, Any], source: str) -> SubNet:
        """A SubNet from an assignment, or from the content of a file ``subnet.json``."""
        assignment = content.get("assignment", content)
        try:
            if not isinstance(assignment, Mapping):
                raise RunError("expected a JSON object of variables and choices")
            subnet = SubNet.from_assignment(self._space, assignment)
        except AutoTailorError as error:
            raise RunError(
                f"{source}: this is no SubNet of the run {self._folder.path}: {error}; name a SubNet of this space "
                f"({self._folder.path.parent / 'space.json'} lists its variables)"
            ) from error
        if content.get("id", subnet.id) != subnet.id:
            raise RunError(
                f"{source}: SubNet {content['id']} is not one of the run {self._folder.path}, in whose space its "
                f"assignment has the id {subnet.id}; name a SubNet of this run, or the run that it comes from"
            )
        return subnet


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(
            f"{path}: this is no text that can be read ({error}); name a file such as subnet.json of an export"
        ) from error


def _content(text: str, source: str) -> Mapping[str, Any]:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise RunError(f"{source}: this is no JSON ({error}); name a file such as subnet.json of an export") from error
    if not isinstance(content, dict):
        raise RunError(f"{source}: expected a JSON object, as in subnet.json of an export")
    return content
