"""Folders that rules work in: what an interrupted rule has done so far, and what is left of finished ones.

A folder is that of a rule and of what its results depend on, so that two configurations never share one.

* A rule that was interrupted goes on in its folder: trainings under changed code, too, since their checkpoints say for
  themselves what they can be gone on with; all others only under the same code.
* Of a rule that has finished, checkpoints and journals are kept (to run it again costs little), converted networks are
  not. The next run of the rule that finishes takes them away.
* What an interrupted rule has left is taken away by a later run of that rule, when it is two weeks old.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotailor.artifacts import atomic, digest, sweep

BEGUN, DONE = "begun.json", "done.json"
KEPT = frozenset({".ckpt", ".jsonl", ".json"})
RECENT_SECONDS = 14 * 24 * 3600.0


@dataclass(frozen=True)
class Work:
    """The folder of one rule.

    Attributes:
        folder: where checkpoints, journals and converted networks lie.
        rule: its name.
        code: module that the rule can run to the hash of what it says.
    """

    folder: Path
    rule: str
    code: Mapping[str, str]

    @classmethod
    def of(
        cls, base: Path, rule: str, wildcards: Sequence[str], key: object, code: Mapping[str, str], *, is_training: bool
    ) -> Work:
        """The folder below ``base`` for a rule, its wildcards, and the key of what its results depend on."""
        name = digest([key]) if is_training else digest([key, dict(code)])
        return cls(base.joinpath(*wildcards) / f"{rule}-{name}", rule, code)

    def begin(self) -> dict[str, str]:
        """Makes the folder; what finished under other code is begun anew.

        Returns:
            The code that its content was begun with.
        """
        if self._read(DONE) not in ({}, self.code):
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        sweep(self.folder)
        if not self._read(BEGUN):
            self._write(BEGUN)
        return self._read(BEGUN)

    def finish(self) -> None:
        """Keeps checkpoints and journals, and takes away what earlier runs of the rule have left."""
        self._write(DONE)
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if path.is_dir():
                if not any(path.iterdir()):
                    path.rmdir()
            elif path.suffix not in KEPT:
                path.unlink()
        ours = re.compile(rf"{self.rule}(-[0-9a-f]{{12}}){{1,2}}")
        for place in (self.folder.parent, self.folder.parent.parent):  # runs of earlier versions left theirs further up
            for other in place.iterdir():
                if other != self.folder and ours.fullmatch(other.name) and not _is_resumable(other):
                    shutil.rmtree(other, ignore_errors=True)

    def _read(self, name: str) -> dict[str, str]:
        try:
            return dict(json.loads((self.folder / name).read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return {}

    def _write(self, name: str) -> None:
        with atomic(self.folder / name) as path:
            path.write_text(json.dumps(dict(self.code)), encoding="utf-8")


def _is_resumable(folder: Path) -> bool:
    """Whether an interrupted rule may still go on here."""
    newest = max((path.stat().st_mtime for path in (folder, *folder.rglob("*"))), default=0.0)
    return not (folder / DONE).exists() and time.time() - newest < RECENT_SECONDS
