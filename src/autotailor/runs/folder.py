"""The folder of a finished run: which artifacts it holds, and whether they were made from each other."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from autotailor.artifacts import PROVENANCE, Provenance, read_json
from autotailor.ir.errors import AutoTailorError
from autotailor.search import Cost, cost_of_device
from autotailor.stages import WRITER

CONFIGURATION = "configuration.json"
OF_ROOT = ("conf", ".snakemake")
"""What lies where runs are started."""


def _written(*files: str) -> dict[str, str]:
    """Files, each with the rule that writes it."""
    return {file: WRITER[file].name for file in files}


OF_MODEL = _written("compiled.pt", "supernet.pt", "sensitivity.csv", "sensitivity.json", "accuracy_validation.csv")
"""Artifacts in ``results/MODEL`` that questions need, each with its rule."""
OF_DEVICE = _written(
    *("lut.csv", "validation.csv", "pareto.csv", "accuracy.json", "candidates.csv", "confirmed.csv"),
    *("polish.json", "polished.pt", "summary.csv", CONFIGURATION),
)
"""Artifacts in ``results/MODEL/DEVICE`` that questions need, each with its rule."""
OF_POOL = _written("pool_supernet.pt", "pool_training.json")
"""Artifacts in ``results/MODEL/DEVICE`` that only runs with a pool have, each with its rule."""
MEASURED = tuple(file for file in OF_DEVICE if WRITER[file].only == "measured")
"""Those of ``OF_DEVICE`` that a run without a device does not have."""


@dataclass(frozen=True)
class RunFolder:
    """The folder ``results/MODEL/DEVICE`` of a finished run.

    Attributes:
        path: of the folder, absolute, links followed.
        root: the folder in which the run was started; paths in the configuration are relative to it.
        provenance: what all artifacts were made from: sections of the configuration, and digests of the files.
    """

    path: Path
    root: Path
    provenance: Provenance

    @property
    def model(self) -> str:
        """Name of the model: of its file in ``conf/model``."""
        return self.path.parent.name

    @property
    def device(self) -> str:
        """Name of the device: of its file in ``conf/device``."""
        return self.path.name

    def file(self, name: str) -> Path:
        """Path of an artifact of ``OF_MODEL``, ``OF_DEVICE`` or ``OF_POOL``."""
        return _place(self.path, name)

    @property
    def cost(self) -> Cost:
        """What the run's budgets limit."""
        return cost_of_device(self.configuration["device"])

    @cached_property
    def configuration(self) -> Mapping[str, Any]:
        """The whole configuration of the run; addresses, serial numbers and paths of keys are left out of the file."""
        return _configuration(self.file(CONFIGURATION))


def open_folder(path: str | Path, needed: Sequence[str] = (*OF_MODEL, *OF_DEVICE)) -> RunFolder:
    """Finds the artifacts of a finished run, and checks that they belong together.

    Args:
        path: the folder ``results/MODEL/DEVICE``.
        needed: names of the artifacts that are read, of ``OF_MODEL``, ``OF_DEVICE`` or ``OF_POOL``; others may be
            missing.

    Raises:
        RunError: the folder is not that of a finished run, or a rule has not run again after an artifact changed.
        ArtifactError: artifacts come from different configurations, or somebody changed one.
    """
    folder = Path(path).expanduser().resolve()
    if not folder.is_dir():
        raise RunError(f"{path}: no such folder; name the folder of a finished run, results/MODEL/DEVICE")
    absent = () if _is_measured(folder) else MEASURED
    names = [name for name in needed if name not in absent]
    if missing := [name for name in names if not _place(folder, name).is_file()]:
        raise RunError(_unfinished(path, folder, missing, is_empty=missing == names))
    paths = {name: _place(folder, name) for name in names}
    provenance = Provenance("questions", {}, list(paths.values()))
    _check_inputs(folder, provenance.inputs, {OF_POOL[name] for name in names if name in OF_POOL})
    return RunFolder(folder, _root(Path(path).expanduser().absolute(), folder), provenance)


def _root(named: Path, folder: Path) -> Path:
    """The folder in which a run was started, where ``results`` may be a link to another disk.

    Args:
        named: folder of the run as it was named, absolute.
        folder: the same, links followed.
    """
    above = named.parents[2] if len(named.parents) > 2 else folder.parents[2]
    return above if any((above / name).exists() for name in OF_ROOT) else folder.parents[2]


def _is_measured(folder: Path) -> bool:
    """Whether the run has a device, which the configuration says; without a configuration it is taken to have one."""
    path = _place(folder, CONFIGURATION)
    return not path.is_file() or cost_of_device(_configuration(path)["device"]).is_measured


def _configuration(path: Path) -> dict[str, Any]:
    """The content of ``configuration.json``; raises RunError where the file is cut or changed."""
    try:
        configuration = dict(json.loads(path.read_text(encoding="utf-8")))
        cost_of_device(configuration["device"])
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path}: is cut or changed, and holds no configuration; {_finish(path.parent)}") from error
    return configuration


def _place(folder: Path, name: str) -> Path:
    return (folder.parent if name in OF_MODEL else folder) / name


def _unfinished(path: str | Path, folder: Path, missing: list[str], *, is_empty: bool) -> str:
    """The message where artifacts are missing; ``is_empty``: all of them."""
    below = (file.parent for at in ("*", "*/*", "results/*/*") for file in folder.glob(f"{at}/{CONFIGURATION}"))
    if inside := sorted(str(folder_.relative_to(folder)) for folder_ in below):
        return f"{path}: this folder holds the runs {', '.join(inside)}; name one, such as {Path(path) / inside[0]}"
    if is_empty:
        return f"{path}: this is not the folder of a run; name the folder of a finished run, results/MODEL/DEVICE"
    rules = {**OF_MODEL, **OF_DEVICE, **OF_POOL}
    named = ", ".join(f"{name} (of rule {rules[name]})" for name in missing)
    written = {
        rules[name] for name in missing if (_place(folder, name).parent / PROVENANCE / f"{rules[name]}.json").exists()
    }
    of_pool = not OF_POOL.keys().isdisjoint(missing)
    return f"{path}: the run is not finished, because {named} is missing; {_finish(folder, sorted(written), of_pool)}"


def _finish(folder: Path, again: Sequence[str] = (), of_pool: bool = False) -> str:
    """What to do.

    Args:
        folder: of the run.
        again: rules that have written files which somebody has removed since.
        of_pool: whether the pool is to be made, which a run makes only where it is asked for.
    """
    command = f"autotailor run model={folder.parent.name} device={folder.name}"
    if passed := (["pool"] if of_pool else []) + (["--forcerun", *again] if again else []):
        command += f" -- {' '.join(passed)}"
    return f"run `{command}` in {folder.parents[2]} to the end, with the overrides of the run"


def _check_inputs(folder: Path, digests: Mapping[str, str], of_pool: Collection[str]) -> None:
    """Raises RunError where a rule has read another version of an artifact than the one that is there now.

    Args:
        folder: of the run.
        digests: SHA-256 of each artifact, by its name.
        of_pool: rules of the pool whose artifacts are read; those of others may be out of date.
    """
    rules = {*OF_MODEL.values(), *OF_DEVICE.values(), *of_pool}
    for directory in (folder.parent, folder):
        for record in sorted((directory / PROVENANCE).glob("*.json")):
            document = read_json(record)
            if document["rule"] not in rules:
                continue
            for name, digest in document["inputs"].items():
                if digests.get(name, digest) != digest:
                    raise RunError(
                        f"{folder}: rule {document['rule']} has read another {name} than the one that is there now, so "
                        f"that its artifacts are out of date; {_finish(folder, of_pool=document['rule'] in of_pool)}"
                    )


class RunError(AutoTailorError):
    """A run is not finished or not of one piece, or a question does not fit the run."""
