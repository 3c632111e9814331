"""The folder of a new export, in which an interrupted export goes on; a folder that holds something else is refused.

While an export is at work, its progress lies in ``.work`` inside the folder, with the question that the export answers.
The same question goes on there, and another question is refused. The folder gets its files when all of them are made.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotailor.artifacts import write_text
from autotailor.runs.folder import RunError

WORK, QUESTION, LOCK, FILES = ".work", "question.json", "lock", "files"


@dataclass(frozen=True)
class Destination:
    """The folder of a new export.

    Attributes:
        folder: of the export, absolute.
    """

    folder: Path

    @property
    def work(self) -> Path:
        """Folder of journals and checkpoints; it is removed when the export is finished."""
        return self.folder / WORK

    @property
    def files(self) -> Path:
        """Folder in which the export's files are made."""
        return self.work / FILES

    def finish(self) -> None:
        """Moves the files to their place, and removes the progress."""
        for path in sorted(self.files.iterdir()):
            os.replace(path, self.folder / path.name)  # noqa: PTH105 - also where an earlier move was interrupted
        shutil.rmtree(self.work)


@contextmanager
def destination(folder: str | Path, question: Mapping[str, Any]) -> Iterator[Destination]:
    """The folder of an export, held against other exports while the block runs.

    Args:
        folder: new, empty, or one in which an export with the same question was interrupted.
        question: what the export depends on, as plain values.

    Raises:
        RunError: the folder holds something else, or another export is at work there.
    """
    made = Destination(Path(folder).expanduser().resolve())
    _check(made, folder, question)
    try:
        made.work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: it cannot be made: {error.strerror}; name a folder where you may write") from error
    with (made.work / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunError(f"{folder}: another export is at work there; wait for it, or name another folder") from error
        write_text(made.work / QUESTION, json.dumps(dict(question)))
        shutil.rmtree(made.files, ignore_errors=True)
        made.files.mkdir()
        yield made


def _check(made: Destination, named: str | Path, question: Mapping[str, Any]) -> None:
    """Raises RunError unless the folder is new, empty, or belongs to the question."""
    if made.folder.exists() and not made.folder.is_dir():
        raise RunError(f"{named}: this is a file, and an export never overwrites; name a new folder")
    if not made.folder.exists() or not any(made.folder.iterdir()):
        return
    try:
        begun = json.loads((made.work / QUESTION).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(
            f"{named}: the folder is not empty, and an export never overwrites; name a new folder"
        ) from error
    if begun != dict(question):
        changed = sorted(key for key in {*begun, *question} if begun.get(key) != question.get(key))
        raise RunError(
            f"{named}: an export with another question was interrupted there ({', '.join(changed)} differ); ask that "
            "question again to finish it, remove the folder, or name a new one"
        )
