"""Work folders of rules: they hold the progress of interrupted rules and the checkpoints of finished ones.

The name of a folder contains a hash of everything that the rule's results depend on, so that two configurations never
share a folder.

* An interrupted rule continues in its folder. A training also continues after its code changed, because a checkpoint
  itself tells whether training can continue from it. All other rules continue only with the same code.
* A finished rule keeps its checkpoints and journals, with which another run costs little, and removes converted
  networks. The next run of the rule that finishes removes the folder.
* The folder of an interrupted rule is removed after two weeks, by a later run of the rule.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotailor.artifacts import digest, sweep, write_text

BEGUN, DONE = "begun.json", "done.json"
KEPT = frozenset({".ckpt", ".jsonl", ".json"})
RECENT_SECONDS = 14 * 24 * 3600.0


@dataclass(frozen=True)
class Work:
    """The folder of one rule.

    Attributes:
        folder: of checkpoints, journals and converted networks.
        rule: name of the rule.
        code: maps each module that the rule can run to the hash of its meaning.
    """

    folder: Path
    rule: str
    code: Mapping[str, str]

    @classmethod
    def of(
        cls, base: Path, rule: str, wildcards: Sequence[str], key: object, code: Mapping[str, str], *, is_training: bool
    ) -> Work:
        """The folder of a rule.

        Args:
            base: folder of all work folders.
            rule: name of the rule.
            wildcards: of the rule; each is one level of folders.
            key: everything that the rule's results depend on, as plain values.
            code: maps each module that the rule can run to the hash of its meaning.
            is_training: whether the rule continues after its code changed, so that the name does not depend on code.
        """
        name = digest([key]) if is_training else digest([key, dict(code)])
        return cls(base.joinpath(*wildcards) / f"{rule}-{name}", rule, code)

    def begin(self) -> dict[str, str]:
        """Makes the folder, and empties it where the rule had finished with other code.

        Returns:
            The code with which the work in the folder was begun.
        """
        if self._read(DONE) not in ({}, self.code):
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        sweep(self.folder)
        if not self._read(BEGUN):
            self._write(BEGUN)
        return self._read(BEGUN)

    def finish(self) -> None:
        """Removes everything but checkpoints and journals, and the folders of earlier runs of the rule."""
        self._write(DONE)
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if path.is_dir():
                if not any(path.iterdir()):
                    path.rmdir()
            elif path.suffix not in KEPT:
                path.unlink()
        ours = re.compile(rf"{self.rule}(-[0-9a-f]{{12}}){{1,2}}")
        for place in (self.folder.parent, self.folder.parent.parent):  # earlier versions used the folder above
            for other in place.iterdir():
                if other != self.folder and ours.fullmatch(other.name) and not _is_resumable(other):
                    shutil.rmtree(other, ignore_errors=True)

    def _read(self, name: str) -> dict[str, str]:
        try:
            return dict(json.loads((self.folder / name).read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return {}

    def _write(self, name: str) -> None:
        write_text(self.folder / name, json.dumps(dict(self.code)))


def _is_resumable(folder: Path) -> bool:
    """Whether an interrupted rule may still continue in this folder."""
    newest = max((path.stat().st_mtime for path in (folder, *folder.rglob("*"))), default=0.0)
    return not (folder / DONE).exists() and time.time() - newest < RECENT_SECONDS
