"""What the files, code and libraries that a configuration names hold: a path says nothing of what lies there."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotailor.code import Code, modules_digest


def network_content(source: str) -> str | None:
    """Digest of where a network comes from.

    Args:
        source: ``model.source``: an ONNX file counts with the files of its external data; ``module:factory`` with the
            code that the module can run, libraries left out; a name of timm's has no content here.

    Returns:
        Hexadecimal digest; None where the source has no content, or none that can be found (compiling says so).
    """
    if source.endswith(".onnx"):
        return _files_digest(_onnx_files(Path(source)))
    prefix, _, factory = source.partition(":")
    if not factory or prefix == "timm":
        return None
    modules = Code(_own_folders(prefix), Path(".snakemake") / "autotailor" / "network.json").closure(prefix)
    return modules_digest(modules) if modules else None


def weights_content(weights: str | None) -> str | None:
    """Digest of a weights file; None where weights come from elsewhere (``pretrain``, the source itself)."""
    return _files_digest([Path(weights)]) if weights else None


def runtime_content(section: Mapping[str, Any]) -> dict[str, Any]:
    """What measuring depends on beyond the configuration: versions of libraries here, hashes of compiled runners.

    Args:
        section: the configuration's section ``device``. A device elsewhere may need either of the runners that are
            built; what libraries lie there is part of its fingerprint.
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


def _versions(packages: tuple[str, ...]) -> dict[str, Any]:
    """Versions of packages; None where one is not installed, which is refused elsewhere."""
    versions: dict[str, Any] = {}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    return versions


def _files_digest(paths: list[Path]) -> str | None:
    """Digest of the contents of files, in their order; None where one is missing."""
    from autotailor.data.files.contents import read_contents

    if not paths or not all(map(_is_file, paths)):
        return None
    contents = read_contents(paths, "reading the network's files")
    return hashlib.sha256("".join(content.sha256 for content in contents).encode()).hexdigest()


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name longer than any file's
        return False


def _onnx_files(path: Path) -> list[Path]:
    """An ONNX file and the files of its external data; the file alone where it cannot be read."""
    import onnx

    from autotailor.compiler.sources.external_data import is_external, tensors

    try:
        model = onnx.load_model(str(path), load_external_data=False)
    except Exception:  # whatever a file that is no ONNX makes the parser trip over; compiling says it
        return [path]
    external = [entry for tensor in tensors(model) if is_external(tensor) for entry in tensor.external_data]
    names = sorted({entry.value for entry in external if entry.key == "location"})
    return [path, *(path.parent / name for name in names if _is_beside(name, path))]


def _is_beside(name: str, model: Path) -> bool:
    """Whether the name of a file of external data leads into the model's folder; compiling refuses what does not."""
    from autotailor.compiler.sources.external_data import is_inside

    try:
        return is_inside((model.parent / name).resolve(), model)
    except (OSError, ValueError, RuntimeError):  # names that no file can have, links in a circle
        return False


def _own_folders(module: str) -> list[Path]:
    """Where a user's own modules are looked for: Python's path without its libraries, and where ``module`` is found."""
    libraries = {Path(path).resolve() for path in sysconfig.get_paths().values()}
    folders = [Path(entry or ".").resolve() for entry in sys.path]
    found = importlib.util.find_spec(module.partition(".")[0])  # a top-level module is found without being imported
    if found and found.submodule_search_locations:
        folders += [Path(location).resolve().parent for location in found.submodule_search_locations]
    elif found and found.origin:
        folders.append(Path(found.origin).resolve().parent)
    return [f for f in dict.fromkeys(folders) if f.is_dir() and not _is_library(f, libraries)]


def _is_library(folder: Path, libraries: set[Path]) -> bool:
    return folder in libraries or folder.name in ("site-packages", "dist-packages", "lib-dynload", "bin")
