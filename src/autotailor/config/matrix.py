"""The configurations of one run: each pair of a model and a device that was asked for has its own."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from autotailor import artifacts
from autotailor.config.checks import check, check_cost
from autotailor.config.names import ConfigError, files
from autotailor.sections import read_sections, write_sections

Section = dict[str, Any]
OF_THE_DEVICE = frozenset({"device", "profile"})
"""Sections that may differ between the devices of one model."""
CLUSTER, LOCAL = "cluster", {"name": "local"}


class Pair(NamedTuple):
    """One network tailored for one device."""

    model: str
    device: str


def split_names(value: object) -> object:
    """The list of names in ``a``, ``a,b`` or ``[a, b]``, each once; returns anything else unchanged."""
    named = [part.strip() for part in value.strip("[]").split(",")] if isinstance(value, str) else value
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        return value
    return list(dict.fromkeys(filter(None, named)))


class Matrix:
    """The configurations of all pairs of some models and some devices.

    A configuration is composed when it is first asked for, and kept in a file. The processes of the rules read this
    file, which takes a hundredth of the time of composing.
    """

    def __init__(
        self,
        conf_dir: Path,
        models: Sequence[str],
        devices: Sequence[str],
        overrides: Sequence[str] = (),
        *,
        lut: str | None = None,
        cluster: str | None = None,
        kept: Path,
        reads: bool = False,
    ) -> None:
        """Composes nothing yet.

        Args:
            conf_dir: the user's folder of configuration files. Autotailor's own folder stands behind it.
            models: files of ``conf/model``.
            devices: files of ``conf/device``.
            overrides: Hydra overrides, for every pair.
            lut: a LUT that replaces the measurements of the one device.
            cluster: a file of ``conf/cluster``; None takes the file that ``config.yaml`` names.
            kept: folder of the files of composed configurations.
            reads: whether a kept file is used. Its name contains the hash of all files of both folders.
        """
        self.models, self.devices = tuple(models), tuple(devices)
        self._conf, self._folder, self._reads = conf_dir, kept, reads
        self._settings = (list(overrides), lut, cluster)
        self._content = artifacts.digest({str(path): artifacts.file_digest(path) for path in files(conf_dir)})
        self._composed: dict[Pair, Section] = {}
        self._clusters: dict[Pair, Section] = {}

    @property
    def pairs(self) -> list[Pair]:
        """All pairs, model by model."""
        return [Pair(*pair) for pair in itertools.product(self.models, self.devices)]

    def pair(self, model: str | None = None, device: str | None = None) -> Pair:
        """The pair of a model and a device; the first model, or the first device, stands for one that is not named.

        What a model's rules do is the same for all devices (``check``), so that any device can stand for all.
        """
        return Pair(model or self.models[0], device or self.devices[0])

    def configuration(self, pair: Pair) -> Section:
        """The configuration of one pair as plain values, without the section ``cluster``.

        Where jobs are computed, and with what, changes no result, and is no part of what provenance and MLflow record.

        Raises:
            ConfigError: a file or a key does not exist, or a value cannot be used.
        """
        if pair not in self._composed:
            path = self.path(pair)
            if not (self._reads and path.exists()):
                composed = self._compose(pair)
                with artifacts.atomic(path) as temporary:
                    write_sections(temporary, {CLUSTER: composed.pop(CLUSTER, LOCAL), "configuration": composed})
            sections = read_sections(path)
            self._composed[pair], self._clusters[pair] = sections["configuration"], sections[CLUSTER]
        return self._composed[pair]

    @property
    def cluster(self) -> Section:
        """The section ``cluster``, which is the same for all pairs."""
        self.configuration(self.pair())
        return self._clusters[self.pair()]

    def path(self, pair: Pair) -> Path:
        """The file of the composed configuration of one pair."""
        return self._folder / f"{artifacts.digest([self._content, pair, self._settings])}.yaml"

    def _compose(self, pair: Pair) -> Section:
        # A process that reads a kept file does without these modules, and with that, without Hydra.
        from autotailor.config.composition import compose
        from autotailor.config.run import validate

        overrides, lut, cluster = self._settings
        try:
            composed = compose(self._conf, *pair, overrides, cluster)
            composed["profile"]["lut"] = lut or composed["profile"]["lut"]
            validate(composed)
        except ConfigError as error:
            if len(self.pairs) == 1:
                raise
            raise ConfigError(f"model {pair.model} on device {pair.device}: {error}") from error
        return composed

    def check(self) -> None:
        """Checks every pair before any work, and that the devices of a model can share its SuperNet.

        Raises:
            AutoTailorError: something is invalid; the message names the first problem and its remedy.
        """
        for model in self.models:
            first = self.configuration(self.pair(model))
            self._check_lut(first["profile"]["lut"])
            check(first)
            for device in self.devices[1:]:
                other = self.configuration(Pair(model, device))
                check_cost(other)
                if differing := [name for name in first if name not in OF_THE_DEVICE and first[name] != other[name]]:
                    raise ConfigError(
                        f"model {model}: the sections {', '.join(differing)} differ between the devices "
                        f"{self.devices[0]} and {device}, which share one SuperNet; run the devices one by one, or "
                        "let these sections not depend on the device"
                    )

    def _check_lut(self, lut: str | None) -> None:
        if lut and len(self.devices) > 1:
            raise ConfigError(
                f"lut={lut} is the table of one device, and device names {len(self.devices)}: "
                f"{', '.join(self.devices)}; run the device of the table alone"
            )

    def boards(self, devices: Sequence[str]) -> dict[str, str]:
        """Maps each of these devices to the first of them that is reached in the same way, and thus is the same board.

        Two files of ``conf/device`` may describe one board, for instance with two runtimes. A board serves one job at
        a time.
        """
        first: dict[tuple[Any, ...], str] = {}
        boards = {}
        for device in devices:
            section = self.configuration(self.pair(device=device))["device"]
            where = tuple(section.get(key) for key in ("transport", "address", "serial"))
            boards[device] = first.setdefault(where, device)
        return boards
