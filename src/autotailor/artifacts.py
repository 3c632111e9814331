"""Artifacts: written whole or not at all, and beside the hash of the configuration they came from.

Every rule leaves ``provenance/<rule>.json`` in the directory of its artifacts. It holds

* ``lineage``: the hash of every configuration section that the artifacts depend on, the rule's own sections and,
  through its inputs, those of every rule before it;
* ``inputs`` and ``outputs``: the SHA-256 of the content of every file;
* ``code``: the modules that the rule can run, and a hash of what each says;
* ``kept``: the rules that the user kept although their code had changed (``--config keep=...``), with what had;
* ``resumed``: the modules that changed while a training was interrupted, which then went on.

A rule that reads artifacts merges their lineages with its own sections. Two hashes for one section mean that two
data sets, spaces or devices are about to mix, and a content that is not the recorded one means that somebody
changed an artifact: both are refused. Nothing in these files depends on the time or the place of the run.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from autotailor.ir.errors import AutoTailorError

SCHEMA_VERSION = 1
FORGOTTEN_SECONDS = 3600.0
"""Age of a temporary folder that nobody writes into any more."""
_TEMPORARY = re.compile(r"\.[a-z0-9_]{8}$")  # what tempfile puts behind the prefix
PROVENANCE = "provenance"


class ArtifactError(AutoTailorError):
    """An artifact is missing, unreadable, or does not belong with the others."""


def digest(value: Any) -> str:
    """Twelve hexadecimal digits of the SHA-256 of a plain value's canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path beside ``path`` that takes its place when the block ends without an error."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target.parent, target.name, FORGOTTEN_SECONDS)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
        temporary = Path(folder) / target.name
        yield temporary
        if not temporary.exists():
            raise ArtifactError(f"{target}: nothing was written")
        _flush(temporary)
        temporary.replace(target)


def sweep(folder: Path, name: str = "*", older_than: float = 0.0) -> None:
    """Removes the temporary folders of ``atomic`` that a killed process has left in a folder.

    Args:
        folder: where the files are.
        name: of a file; every file, where none is given.
        older_than: seconds; a folder that is younger may be that of another process, at work now.
    """
    for left in folder.glob(f".{glob.escape(name) if name != '*' else name}.*"):
        if _TEMPORARY.search(left.name) and left.is_dir():
            with suppress(OSError):
                if time.time() - left.stat().st_mtime >= older_than:
                    shutil.rmtree(left)


def _flush(path: Path) -> None:
    """Brings a file's content to the disk, so that a crash cannot leave an empty file under the final name."""
    if path.is_file():
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_json(path: str | Path, content: Mapping[str, Any]) -> None:
    """Writes a JSON object with its ``schema_version`` first."""
    document = {"schema_version": SCHEMA_VERSION, **content}
    with atomic(path) as temporary:
        temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def read_json(path: str | Path) -> dict[str, Any]:
    """Reads a JSON object of this schema version.

    Raises:
        ArtifactError: the file is missing, is no JSON object, or has another schema version.
    """
    source = Path(path)
    try:
        document = json.loads(source.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ArtifactError(f"{source}: no such artifact; run the rule that writes it") from error
    except json.JSONDecodeError as error:
        raise ArtifactError(f"{source}: is no JSON file ({error}); remove it and run snakemake again") from error
    version = document.get("schema_version") if isinstance(document, dict) else None
    if version != SCHEMA_VERSION:
        raise ArtifactError(
            f"{source}: schema version {version}, expected {SCHEMA_VERSION}; remove it and run snakemake again"
        )
    return dict(document)


def merge_lineages(lineages: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """One lineage out of many.

    Args:
        lineages: who says it (a rule, or "the configuration") to section name to hash.

    Raises:
        ArtifactError: two of them disagree on a section.
    """
    merged: dict[str, str] = {}
    witness: dict[str, str] = {}
    for source, lineage in lineages.items():
        for section, value in lineage.items():
            if merged.setdefault(section, value) != value:
                raise ArtifactError(
                    f"configuration section {section!r}: {witness[section]} has {merged[section]}, {source} has "
                    f"{value}; these do not belong together. Run snakemake without --touch or --allowed-rules, "
                    "so that the older one is made again"
                )
            witness.setdefault(section, source)
    return merged


def read_lineage(path: Path) -> tuple[str, dict[str, str]]:
    """The rule that wrote an artifact, and the lineage recorded for it; checks the artifact's content.

    Raises:
        ArtifactError: there is no record of the artifact, or its content is another one.
    """
    for directory in (path.parent, *path.parents[1:4]):
        for record in sorted((directory / PROVENANCE).glob("*.json")):
            document = read_json(record)
            recorded = document["outputs"].get(os.path.relpath(path, directory))
            if recorded is None:
                continue
            if recorded != file_digest(path):
                raise ArtifactError(
                    f"{path}: its content is not what rule {document['rule']} wrote. Remove it and run snakemake "
                    "again; a file of your own belongs into the configuration"
                )
            return str(document["rule"]), dict(document["lineage"])
    raise ArtifactError(f"{path}: no record of the configuration it came from; remove it and run snakemake again")


def recorded_code(record: Path | None) -> dict[str, str]:
    """The code that a rule's artifacts came from: module to hash; nothing where a record is missing or does not say."""
    try:
        code = read_json(record)["code"] if record else {}
    except (ArtifactError, KeyError):
        return {}
    return {str(name): str(value) for name, value in dict(code).items()}


class Provenance:
    """What a rule's artifacts come from; see the module's text."""

    def __init__(self, rule: str, sections: Mapping[str, Any], inputs: Sequence[Path]) -> None:
        """Checks that the inputs belong together and to the sections.

        Args:
            rule: name of the rule.
            sections: the configuration sections it uses, by name.
            inputs: the artifacts it reads.

        Raises:
            ArtifactError: see ``merge_lineages`` and ``read_lineage``.
        """
        lineages = {"the configuration": {name: digest(section) for name, section in sections.items()}}
        for path in inputs:
            source, lineage = read_lineage(path)
            lineages[f"{path} of rule {source}"] = lineage
        self.rule = rule
        self.lineage = merge_lineages(lineages)
        self.inputs = {path.name: file_digest(path) for path in sorted(inputs)}

    @property
    def key(self) -> str:
        """Hash of the sections and the contents of the inputs: names the work directory of the rule."""
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
            code: module that the rule can run to the hash of what it says.
            kept: rule that was kept although its code had changed to the modules that had.
            resumed: modules that changed between the interrupted run that the rule went on with and its end.
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
