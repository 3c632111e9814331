"""Digests of the files, code and libraries that a configuration names, because a path does not show a change.

Results are compared with what their rules recorded (``altered``), because Snakemake goes by dates.
"""

import hashlib
import importlib.metadata
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from autotailor.artifacts import PROVENANCE, read_json
from autotailor.code import factory_content
from autotailor.ir.errors import printable

MOST_NAMED = 4


def network_content(source: str) -> str | None:
    """Digest of the source of a network.

    Args:
        source: ``model.source``. The digest of an ONNX file covers the files of its external data. The digest of
            ``module:factory`` covers the code that the module can run, without libraries. A name of timm has none.

    Returns:
        Hexadecimal digest; None where the source has no digest, or cannot be found, which the compiler reports.
    """
    if source.endswith(".onnx"):
        return _files_digest(_onnx_files(Path(source)))
    prefix, _, factory = source.partition(":")
    if not factory or prefix == "timm":
        return None
    return factory_content(source, Path(".snakemake") / "autotailor" / "network.json")


def training_content(section: Mapping[str, Any]) -> dict[str, str | None]:
    """Digests of what ``finetune`` or ``polish`` names: another teacher, a loss, and data of the stages before."""
    sources = {name: section.get(name) for name in ("teacher", "loss")}
    found = {name: network_content(source) if source else None for name, source in sources.items()}
    for number, stage in enumerate(section.get("stages") or ()):
        from autotailor.data.registry import training_fingerprint

        found[f"stage_{number}"] = training_fingerprint(stage["data"])
    return found


def weights_content(weights: str | None) -> str | None:
    """Digest of a weights file; None where there is no such file, because the source has the weights."""
    return _files_digest([Path(weights)]) if weights else None


def runtime_content(section: Mapping[str, Any]) -> dict[str, Any]:
    """Everything beside the configuration that measurements depend on: versions of libraries, hashes of runners.

    Args:
        section: the configuration's section ``device``. All built runners count, because a remote device may need any
            of them. The libraries on a remote device are part of its fingerprint.
    """
    from autotailor.profiling.device import DeviceConfig
    from autotailor.profiling.runtimes import open_runtime
    from autotailor.profiling.runtimes.ncnn.compiled import NcnnCompiledRuntime
    from autotailor.profiling.runtimes.runner.binary import built_runners

    runtime = open_runtime(DeviceConfig.from_section(section))
    content: dict[str, Any] = _versions(getattr(runtime, "packages", ()))
    if isinstance(runtime, NcnnCompiledRuntime):
        content["runners"] = {target: _files_digest([path]) for target, path in built_runners().items()}
    return content


def exporter_content() -> dict[str, Any]:
    """Versions of the libraries that write and verify exported files."""
    from autotailor.profiling.runtimes import exporting_runtime

    return _versions(getattr(exporting_runtime(), "packages", ()))


def altered(folders: Iterable[Path]) -> dict[Path, str]:
    """The results whose content is not what their rule wrote, each with the rule, such as exports that were swapped.

    A file is read only where its size or its times are not those at which it was read last; moving a file keeps the
    date of its content, and changes that of its metadata. Removed files do not count: Snakemake makes them anew. Nor do
    those of a pool, which ``autotailor runtime search`` extends, and which hold a hash of their own.

    Args:
        folders: ``results/MODEL`` and ``results/MODEL/DEVICE``; one that lacks records is left out.
    """
    from autotailor.data.files.contents import read_contents

    recorded = dict[Path, tuple[str, str]]()
    for record in sorted({path for folder in folders for path in (folder / PROVENANCE).glob("*.json")}):
        document = read_json(record)
        if document["rule"] != "make_pool":
            for name, digest in document.get("outputs", {}).items():
                path = Path(os.path.normpath(record.parents[1] / name))
                recorded[path] = (digest, document["rule"])
    there = [path for path in recorded if path.is_file()]
    contents = read_contents(there, "comparing the results with their records")
    return {
        path: recorded[path][1]
        for path, content in zip(there, contents, strict=True)
        if content.sha256 != recorded[path][0]
    }


def altered_sentence(paths: Mapping[Path, str]) -> str:
    """What ``altered`` has found, as one sentence with the remedy; "" where nothing was altered."""
    if not paths:
        return ""
    named = [f"{printable(str(path))} of rule {rule}" for path, rule in list(paths.items())[:MOST_NAMED]]
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    return (
        f"the content of {', '.join(named)}{more} is not what the rule wrote, so that tables, cards and verifications "
        "describe another file; remove these files and run again, which makes them anew"
    )


def _versions(packages: tuple[str, ...]) -> dict[str, Any]:
    """Versions of packages; None for a package that is not installed, which other checks refuse."""
    versions: dict[str, Any] = {}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    return versions


def _files_digest(paths: list[Path]) -> str | None:
    """Digest of the contents of files, in their order; None where a file is missing."""
    from autotailor.data.files.contents import read_contents

    if not paths or not all(map(_is_file, paths)):
        return None
    contents = read_contents(paths, "reading the network's files")
    return hashlib.sha256("".join(content.sha256 for content in contents).encode()).hexdigest()


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # the name is too long for a file
        return False


def _onnx_files(path: Path) -> list[Path]:
    """An ONNX file and the files of its external data; the file alone where it cannot be read."""
    import onnx

    from autotailor.compiler.sources.external_data import is_external, tensors

    try:
        model = onnx.load_model(str(path), load_external_data=False)
    except Exception:  # the file is not ONNX; the compiler reports it
        return [path]
    external = [entry for tensor in tensors(model) if is_external(tensor) for entry in tensor.external_data]
    names = sorted({entry.value for entry in external if entry.key == "location"})
    return [path, *(path.parent / name for name in names if _is_beside(name, path))]


def _is_beside(name: str, model: Path) -> bool:
    """Whether a file of external data lies in the model's folder; the compiler refuses other files."""
    from autotailor.compiler.sources.external_data import is_inside

    try:
        return is_inside((model.parent / name).resolve(), model)
    except (OSError, ValueError, RuntimeError):  # impossible file names, links in a circle
        return False
