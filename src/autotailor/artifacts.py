"""Artifacts: atomic writes, and a record of the configuration from which each artifact was made.

Every rule writes ``provenance/<rule>.json`` into the directory of its artifacts. The record holds

* ``lineage``: the hash of every configuration section that the artifacts depend on: the rule's own sections and,
  through the rule's inputs, the sections of every earlier rule;
* ``inputs`` and ``outputs``: the SHA-256 of the content of every file;
* ``code``: the modules that the rule can run, each with a hash of its meaning;
* ``kept``: the rules that the user kept although their code had changed (``--config keep=...``), with the changed
  modules;
* ``resumed``: the modules that changed between the interruption of a training and its continuation.

A rule that reads artifacts merges the artifacts' lineages with its own sections. The rule fails where a section has two
hashes, because two data sets, spaces or devices would be mixed, and where an artifact's content is not the recorded
one, because somebody changed the artifact. Nothing in a record depends on the time or the place of the run.
"""

import errno
import glob
import hashlib
import io
import json
import os
import re
import shutil
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from autotailor.ir.errors import AutoTailorError

SCHEMA_VERSION = 1
FORGOTTEN_SECONDS = 3600.0
"""Age from which a temporary folder counts as left behind."""
OLD_SECONDS = 14 * 24 * 3600.0
"""After which a file that is kept for later rules, and that no rule has read, is removed."""
_TEMPORARY = re.compile(r"\.[a-z0-9_]{8}$")  # the suffix that tempfile adds to the prefix
PROVENANCE = "provenance"
_UNFINISHED = ("unexpected pos", "PytorchStreamWriter failed")  # messages of torch.save for an unfinished write


class ArtifactError(AutoTailorError):
    """An artifact is missing, unreadable, or was made from another configuration than the others."""


def digest(value: Any) -> str:
    """Twelve hexadecimal digits of the SHA-256 of a plain value's canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def open_regular(path: str | bytes | Path, most: int | None = None) -> io.BufferedReader:
    """Opens a file of somebody else's for reading; pipes, on which a reader waits, and devices are refused.

    Args:
        path: of the file.
        most: bytes that it may have.

    Raises:
        OSError: it cannot be opened, is no regular file, or has more bytes.
    """
    stream = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    status, reason = os.fstat(stream.fileno()), ""
    if not stat.S_ISREG(status.st_mode):
        reason = "is a pipe, a device or a folder, and no file"
    elif most is not None and status.st_size > most:
        reason = f"has {status.st_size:,} bytes, and may have {most:,}"
    if reason:
        stream.close()
        raise OSError(errno.EINVAL, reason, os.fsdecode(path))
    return stream


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path beside ``path``, and renames it to ``path`` if the block ends without an error.

    Raises:
        ArtifactError: the block has not written the temporary file.
        OSError: the disk is full; ``filename`` says where, also where the block's error does not.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target.parent, target.name, FORGOTTEN_SECONDS)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
        temporary = Path(folder) / target.name
        try:
            yield temporary
            if not temporary.exists():
                raise ArtifactError(f"{target}: nothing was written")
            _flush(temporary)
        except (OSError, RuntimeError) as error:
            if not _is_full(error) or getattr(error, "filename", None):
                raise
            raise OSError(errno.ENOSPC, str(error), f"{target} or {tempfile.gettempdir()}") from error
        temporary.replace(target)


def sweep(folder: Path, name: str = "*", older_than: float = 0.0) -> None:
    """Removes the temporary folders of ``atomic`` that killed processes have left in a folder.

    Args:
        folder: of the files.
        name: of the file whose temporary folders are removed; by default those of every file.
        older_than: seconds; a younger folder may belong to another process that is still writing.
    """
    for left in folder.glob(f".{glob.escape(name) if name != '*' else name}.*"):
        if _TEMPORARY.search(left.name) and left.is_dir():
            with suppress(OSError):
                if time.time() - left.stat().st_mtime >= older_than:
                    shutil.rmtree(left)


@cache
def swept(folder: Path) -> Path:
    """A folder of files for later rules, from which this process has removed old ones and what killed processes left.

    Args:
        folder: of the files, whose dates say when a rule has last read them; it need not be there.
    """
    sweep(folder, older_than=OLD_SECONDS)
    with suppress(OSError):
        for path in folder.glob("*.np[yz]"):
            if time.time() - path.stat().st_mtime > OLD_SECONDS:
                path.unlink()
    return folder


def _flush(path: Path) -> None:
    """Writes a file's content to the disk, so that a crash cannot leave an empty file under the final name."""
    if path.is_file():
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_text(path: str | Path, text: str) -> None:
    """Writes a file whole or not at all, see ``atomic``."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, content: Mapping[str, Any]) -> None:
    """Writes a JSON object with its ``schema_version`` first."""
    write_text(path, json.dumps({"schema_version": SCHEMA_VERSION, **content}, indent=2) + "\n")


def read_json(path: str | Path) -> dict[str, Any]:
    """Reads a JSON object of this schema version.

    Raises:
        ArtifactError: the file is missing, is not a JSON object, or has another schema version.
    """
    source = Path(path)
    try:
        with open_regular(source) as stream:
            document = json.loads(stream.read().decode("utf-8"))
    except FileNotFoundError as error:
        raise ArtifactError(f"{source}: no such artifact; run the rule that writes it") from error
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ArtifactError(f"{source}: is not a JSON file ({error}); remove it and run again") from error
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise ArtifactError(f"{source}: {error.strerror}; remove it and run again") from error
    version = document.get("schema_version") if isinstance(document, dict) else None
    if version != SCHEMA_VERSION:
        raise ArtifactError(f"{source}: schema version {version}, expected {SCHEMA_VERSION}; remove it and run again")
    return dict(document)


def merge_lineages(lineages: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Merges lineages into one.

    Args:
        lineages: maps each source (a rule, or "the configuration") to its lineage, from section name to hash.

    Raises:
        ArtifactError: two lineages have different hashes for a section.
    """
    merged: dict[str, str] = {}
    witness: dict[str, str] = {}
    for source, lineage in lineages.items():
        for section, value in lineage.items():
            if merged.setdefault(section, value) != value:
                raise ArtifactError(
                    f"configuration section {section!r}: {witness[section]} has {merged[section]}, {source} has "
                    f"{value}; these do not belong together. Run without Snakemake's --touch or --allowed-rules, "
                    "so that the older artifact is made again; where an interrupted run has left it, add --forcerun "
                    "and the name of its rule"
                )
            witness.setdefault(section, source)
    return merged


def read_lineage(path: Path) -> tuple[str, dict[str, str]]:
    """The rule that wrote an artifact, and the artifact's lineage; checks the artifact's content.

    Raises:
        ArtifactError: the artifact has no record, or its content is not the recorded one.
    """
    for directory in (path.parent, *path.parents[1:4]):
        for record in sorted((directory / PROVENANCE).glob("*.json")):
            document = read_json(record)
            recorded = document["outputs"].get(os.path.relpath(path, directory))
            if recorded is None:
                continue
            if recorded != file_digest(path):
                raise ArtifactError(
                    f"{path}: its content is not what rule {document['rule']} wrote. Remove it and run "
                    "again; name a file of your own in the configuration instead"
                )
            return str(document["rule"]), dict(document["lineage"])
    raise ArtifactError(f"{path}: there is no record of its configuration; remove it and run again")


def recorded_code(record: Path | None) -> dict[str, str]:
    """The code that made a rule's artifacts, as module to hash; empty where no record holds it."""
    try:
        code = read_json(record)["code"] if record else {}
    except (ArtifactError, KeyError):
        return {}
    return {str(name): str(value) for name, value in dict(code).items()}


def _told_apart(paths: Sequence[Path]) -> dict[Path, str]:
    """Each of some different paths with its shortest ending that no other one has, such as ``budget_01/model.onnx``."""
    endings = {path: ["/".join(path.parts[-count:]) for count in range(1, len(path.parts) + 1)] for path in paths}
    shared = Counter(ending for own in endings.values() for ending in own)
    return {path: next((each for each in own if shared[each] == 1), own[-1]) for path, own in endings.items()}


class Provenance:
    """The record of a rule's artifacts; see the module's docstring."""

    def __init__(self, rule: str, sections: Mapping[str, Any], inputs: Sequence[Path]) -> None:
        """Checks that the inputs and the sections were made from the same configuration.

        Args:
            rule: name of the rule.
            sections: the configuration sections that the rule uses, by name.
            inputs: the artifacts that the rule reads.

        Raises:
            ArtifactError: see ``merge_lineages`` and ``read_lineage``.
        """
        lineages = {"the configuration": {name: digest(section) for name, section in sections.items()}}
        for path in inputs:
            source, lineage = read_lineage(path)
            lineages[f"{path} of rule {source}"] = lineage
        self.rule = rule
        self.lineage = merge_lineages(lineages)
        self.inputs = {name: file_digest(path) for path, name in _told_apart(sorted(set(inputs))).items()}

    @property
    def key(self) -> str:
        """Hash of the sections and the contents of the inputs, which names the rule's work directory."""
        return digest([self.rule, self.lineage, self.inputs])

    def write(
        self,
        path: Path,
        outputs: Sequence[Path],
        code: Mapping[str, str] | None = None,
        kept: Mapping[str, Sequence[str]] | None = None,
        resumed: Sequence[str] = (),
    ) -> None:
        """Records the finished artifacts in ``<directory>/provenance/<rule>.json``.

        Args:
            path: of the record.
            outputs: the artifacts.
            code: maps each module that the rule can run to the hash of its meaning.
            kept: maps each rule that was kept although its code had changed to the changed modules.
            resumed: modules that changed between the interruption of the rule and its continuation.
        """
        directory = path.parent.parent
        write_json(
            path,
            {
                "rule": self.rule,
                "lineage": dict(sorted(self.lineage.items())),
                "inputs": self.inputs,
                "outputs": {os.path.relpath(output, directory): file_digest(output) for output in sorted(outputs)},
                "code": dict(sorted((code or {}).items())),
                "kept": {rule: list(modules) for rule, modules in sorted((kept or {}).items())},
                "resumed": list(resumed),
            },
        )


def _is_full(error: BaseException) -> bool:
    """Whether an error says that a disk or a quota is full; PyTorch says so by a RuntimeError."""
    if isinstance(error, RuntimeError):
        return any(said in str(error) for said in _UNFINISHED)
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def disk_trouble(error: BaseException) -> str:
    """What a person can do about a disk that is full or that refuses a file; "" for every other error."""
    where = getattr(error, "filename", None) or f"{Path.cwd()} or {tempfile.gettempdir()}"
    if _is_full(error):
        return f"{where}: no space is left there; free some, and give the same command again: what is done is kept"
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{where}: cannot be used ({error.strerror}); give access to it, and give the same command again"
    return ""
