"""What ``snakemake --config`` takes."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from autotailor.config.names import ConfigError
from autotailor.sections import Section
from autotailor.stages import STAGES
from autotailor.values import OneOf, Told

Names = Annotated[tuple[str, ...], Told("a list with at least one name", bool)]
Kept = Annotated[str, OneOf(*(name for name, stage in STAGES.items() if stage.is_long))]


class CommandLine(Section, of="--config:", error=ConfigError):
    """What ``snakemake --config`` takes.

    Attributes:
        model: files of conf/model, without .yaml; one, or several as [a,b]
        device: files of conf/device, without .yaml; one, or several as [a,b]. Every model is tailored for every device
        cluster: a file of conf/cluster, without .yaml: what jobs get where they are computed; profiles/slurm names
            slurm, else it is local
        lut: somebody else's lut.csv of this device; nothing is measured then, and the device is not needed
        recipe: a file of conf/recipe, without .yaml: how much is trained and evaluated, quick, default or thorough
        overrides: hydra overrides that change existing keys of conf/, for instance finetune.epochs=1
        keep: rules whose artifacts are kept although code that they came from has changed; provenance and report say so
    """

    model: Names = ("resnet_digits",)
    device: Names = ("host",)
    cluster: str | None = None
    lut: Annotated[str, Told("the path of a lut.csv", bool)] | None = None
    recipe: str | None = None
    overrides: tuple[str, ...] = ()
    keep: Annotated[tuple[Kept, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)] = ()
