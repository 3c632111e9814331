"""Parameters of pretraining, weight-shared finetuning, and the uniformly scaled networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

from autotailor.accuracy.config import CalibrationConfig
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.precision import PRECISIONS, resolve
from autotailor.sections import check_integers, check_numbers, read_section

OPTIMIZERS = ("adamw", "sgd")
Config = TypeVar("Config", bound="LoopConfig")


def _check_integers(owner: object, **least: int) -> None:
    check_integers(owner, least, type(owner).__name__, TrainingError)


def _check_numbers(owner: object, *names: str) -> None:
    check_numbers(owner, dict.fromkeys(names, 0.0), type(owner).__name__, TrainingError)


def _text(config: Any) -> str:
    """Names and values of all parameters in the repr that differ from their defaults, including nested parameters."""
    said = [
        f"{field.name}={_text(value) if is_dataclass(value) else repr(value)}"
        for field in fields(config)
        if field.repr and (value := getattr(config, field.name)) != _default(field)
    ]
    return f"{type(config).__name__}({', '.join(sorted(said))})"


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """Parameters of every training loop.

    Attributes:
        epochs: passes over the training stream.
        batch_size: images per step.
        optimizer: ``adamw`` or ``sgd`` (Nesterov, momentum 0.9).
        lr: peak learning rate; it rises linearly over ``warmup`` (a part of all steps) and falls as a half cosine.
        weight_decay: on weights with more than one axis.
        label_smoothing: of the cross entropy.
        gradient_norm: gradients of a larger norm are scaled down to this norm; 0 switches scaling off.
        seed: of everything random in training; the data have their own seed.
        threads: of PyTorch; floating-point sums depend on their number.
        precision: ``fp32``, ``bf16`` (mixed, see ``autotailor.finetuning.precision``), or ``auto``, which chooses the
            faster precision for the processor.
        checkpoint_seconds: time between checkpoints; it does not influence the result.
    """

    epochs: int
    batch_size: int = 64
    optimizer: str = "adamw"
    lr: float = 4e-3
    warmup: float = 0.05
    weight_decay: float = 0.02
    label_smoothing: float = 0.1
    gradient_norm: float = 0.0
    seed: int = 0
    threads: int = 1
    precision: str = "fp32"
    checkpoint_seconds: float = 300.0

    def __post_init__(self) -> None:
        _check_integers(self, epochs=0, batch_size=2, seed=0, threads=1)
        _check_numbers(self, "lr", "warmup", "weight_decay", "label_smoothing", "gradient_norm", "checkpoint_seconds")
        if self.optimizer not in OPTIMIZERS:
            raise TrainingError(f"unknown optimizer {self.optimizer!r}; known are {', '.join(OPTIMIZERS)}")
        if self.precision not in PRECISIONS:
            raise TrainingError(f"unknown precision {self.precision!r}; known are {', '.join(PRECISIONS)}")
        if self.lr == 0 or self.warmup > 1 or self.label_smoothing >= 1:
            raise TrainingError("training needs lr > 0, warmup <= 1 and label_smoothing < 1")

    @property
    def identity(self) -> str:
        """Text of all parameters that influence the result.

        Parameters with their default values are left out, so that a later version may add a parameter, with a default
        that changes nothing, and still continue a training that an earlier version began.
        """
        return _text(self._identified())

    def _identified(self: Config) -> Config:
        """The same parameters with the resolved precision, and without parameters that do not influence the result."""
        return replace(self, checkpoint_seconds=0.0, precision=resolve(self.precision))

    @classmethod
    def from_section(cls: type[Config], section: Mapping[str, Any]) -> Config:
        """Reads a section of the configuration; nested sections become nested parameters.

        Raises:
            TrainingError: a key is unknown or missing, or a value is out of range.
        """
        if not isinstance(section, Mapping):
            raise TrainingError(f"{cls.__name__}: expected a mapping of parameters, not {section!r}")
        nested = {"calibration": CalibrationConfig, "distillation": DistillationConfig}
        values = {
            key: read_section(nested[key], value, f"{cls.__name__}.{key}", TrainingError) if key in nested else value
            for key, value in section.items()
        }
        return read_section(cls, values, cls.__name__, TrainingError)


@dataclass(frozen=True)
class DistillationConfig:
    """Learning from the original network.

    Attributes:
        weight: of the teacher's soft labels, between 0 and 1; the true labels get the rest.
        temperature: by which the logits of teacher and student are divided.
    """

    weight: float = 0.7
    temperature: float = 1.0

    def __post_init__(self) -> None:
        _check_numbers(self, "weight", "temperature")
        if self.weight > 1 or self.temperature == 0:
            raise TrainingError("distillation needs a weight between 0 and 1 and a temperature above 0")


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(LoopConfig):
    """Training of the original network from scratch, with labels and without a teacher."""


@dataclass(frozen=True, kw_only=True)
class FinetuneConfig(LoopConfig):
    """Weight-shared training.

    Attributes:
        name: of the file in conf/finetune, for the reader.
        strategy: name of the sampling strategy (``autotailor.finetuning.sampling``) that draws each step's SubNets.
        subnets: SubNets that each step trains, including the largest and the smallest one of the sandwich.
        workers: SubNets that run side by side; results do not depend on their number.
        sort: whether channels are sorted by importance once before training.
        distillation: from the original network; a strategy with in-place distillation uses it for the largest SubNet.
        calibration: of every SubNet that is evaluated or exported.
        accept_chance: whether training starts even where the original network classifies the data no better than
            chance (``autotailor.finetuning.teacher``); it does not influence the result.
    """

    name: str = ""
    strategy: str = "sandwich"
    subnets: int = 4
    workers: int = 1
    sort: bool = True
    distillation: DistillationConfig = field(default_factory=DistillationConfig)
    calibration: CalibrationConfig = field(default_factory=CalibrationConfig)
    accept_chance: bool = field(default=False, repr=False)  # not part of ``identity``

    @property
    def identity(self) -> str:
        return _text(replace(self._identified(), workers=1))

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_integers(self, subnets=1, workers=1)
        if not isinstance(self.accept_chance, bool):
            raise TrainingError(f"FinetuneConfig.accept_chance: expected true or false, not {self.accept_chance!r}")


@dataclass(frozen=True, kw_only=True)
class ScaledConfig(LoopConfig):
    """Training of a uniformly scaled network for comparison.

    Attributes:
        epochs: smallest number of epochs; training lasts until both ``epochs`` and ``images`` are reached.
        images: smallest number of training images; for a fair comparison, as many as the SuperNet saw in pretraining
            and finetuning together.
        lrs: learning rates that are tried; the accuracy on the validation set decides. ``lr`` is not used.
        resolution: side to which images are resized, in pixels; 0 leaves their size.
        distillation: from the original network.
    """

    epochs: int = 0
    images: int = 0
    lrs: tuple[float, ...] = (2e-3, 4e-3, 8e-3)
    resolution: int = 0
    distillation: DistillationConfig = field(default_factory=DistillationConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_integers(self, images=0, resolution=0)
        if not self.lrs or any(not isinstance(lr, int | float) or not lr > 0 for lr in self.lrs):
            raise TrainingError(f"ScaledConfig.lrs: expected learning rates above 0, not {self.lrs!r}")
        if len(set(self.lrs)) != len(self.lrs):
            raise TrainingError(f"ScaledConfig.lrs: {self.lrs} lists a learning rate twice")
        if not self.epochs and not self.images:
            raise TrainingError("ScaledConfig: set images to the number of images that the SuperNet saw, or set epochs")
