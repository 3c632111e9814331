"""Parameters that every training loop has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, TypeVar

from autotailor.compute import accelerator
from autotailor.data.augmentation.config import AugmentationConfig
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.training.optimizers import names
from autotailor.finetuning.training.precision import PRECISIONS, resolve
from autotailor.sections import check_integers, check_numbers, place, read_section

Config = TypeVar("Config", bound="LoopConfig")


def at_least(owner: object, **least: int) -> None:
    """Raises TrainingError unless each named field is an integer of at least its value."""
    check_integers(owner, least, place(owner), TrainingError)


def not_negative(owner: object, *names: str) -> None:
    """Raises TrainingError unless each named field is a finite number of at least 0."""
    check_numbers(owner, dict.fromkeys(names, 0.0), place(owner), TrainingError)


def said(config: Any) -> str:
    """Names and values of all parameters in the repr that differ from their defaults, including nested parameters."""
    parts = [f"{name}={said(value) if is_dataclass(value) else repr(value)}" for name, value in changes(config).items()]
    return f"{type(config).__name__}({', '.join(sorted(parts))})"


def changes(config: Any) -> dict[str, Any]:
    """The parameters in the repr that differ from their defaults, by name in the order of the dataclass."""
    return {
        field.name: value
        for field in fields(config)
        if field.repr and (value := getattr(config, field.name)) != _default(field)
    }


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


WITHOUT_EFFECT = frozenset({"workers", "checkpoint_seconds", "spike", "accept_chance"})
"""Keys of trainings that do not influence what is trained: ``identity`` leaves them out."""


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """Parameters of every training loop.

    Attributes:
        epochs: passes over the training images.
        batch_size: images in each step.
        optimizer: AdamW, the same in PyTorch's fused form (faster where networks are large; its sums are rounded
            otherwise), LAMB (for large batches), Muon (orthogonal steps for matrices and convolutions, at rates like
            AdamW's), RMSprop with momentum 0.9, or SGD with Nesterov's momentum of 0.9.
        lr: highest learning rate. The rate rises linearly during ``warmup`` and then falls as a half cosine. A high
            rate makes a network that arrives trained forget.
        warmup: part of all steps in which the learning rate rises.
        weight_decay: of the weights with more than one axis.
        label_smoothing: of the cross entropy.
        gradient_norm: gradients are scaled down to this norm. 0 leaves them alone.
        seed: of everything random in this training, besides the data's own seed.
        threads: PyTorch's threads in this training.
        precision: as at the top level.
        accelerator: as at the top level.
        processes: as at the top level. ``batch_size`` must be a multiple of the number of all processes.
        nodes: as at the top level.
        sync_batch_norm: whether BatchNorm in training computes with the statistics of the whole batch, which the
            processes exchange in each layer, or each process with those of its own part. Without effect for one
            process.
        micro_batch: images in one forward pass of a process; 0 passes its whole part of the batch. A step adds up the
            gradients of its passes. Where an accelerator's memory is too small, training halves the number by itself
            and says so. BatchNorm sees the images of one pass at a time.
        ema: decay of the exponential moving average of the weights over the steps, which is measured and kept in place
            of the weights themselves (0.999 is usual). 0 averages nothing.
        augmentation: what is done to the training images beside crop and flip, by ``torchvision.transforms.v2``. The
            images of calibration and evaluation stay as they are.
        checkpoint_seconds: time between two checkpoints. The result does not depend on it.
        spike: training ends with an error where the loss of a step exceeds so many times the usual loss of steps that
            train the same. 0 warns of losses above five times the usual one, and goes on.
    """

    NESTED: ClassVar[Mapping[str, type[Any]]] = {"augmentation": AugmentationConfig}
    """Key of a nested section to the dataclass that reads it."""
    SECTION: ClassVar[str] = "training"
    """The section of the configuration that holds these parameters."""

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
    accelerator: str = "cpu"
    processes: int = 1
    nodes: int = 1
    sync_batch_norm: bool = True
    micro_batch: int = 0
    ema: float = 0.0
    augmentation: AugmentationConfig = field(default_factory=AugmentationConfig)
    checkpoint_seconds: float = 300.0
    spike: float = field(default=0.0, repr=False)  # not part of ``identity``

    def __post_init__(self) -> None:
        at_least(self, epochs=0, batch_size=2, seed=0, threads=1, micro_batch=0, processes=1, nodes=1)
        not_negative(self, "lr", "warmup", "weight_decay", "label_smoothing", "gradient_norm")
        not_negative(self, "checkpoint_seconds", "spike", "ema")
        accelerator.check_name(self.accelerator, f"{place(self)}.accelerator")
        self._check_names()
        self._check_processes()
        self._check_ranges()

    @property
    def world(self) -> int:
        """Number of all processes that train together."""
        return self.processes * self.nodes

    def _check_names(self) -> None:
        for key, known in (("optimizer", names()), ("precision", PRECISIONS)):
            if (value := getattr(self, key)) not in known:
                known_names = ", ".join(known)
                raise TrainingError(f"{place(self)}.{key}: unknown {key} {value!r}; known are {known_names}")

    def _check_ranges(self) -> None:
        ranges = {
            "lr": (self.lr > 0, "a rate above 0 (where nothing is to be trained, 0 epochs)"),
            "warmup": (self.warmup <= 1, "a share of the steps from 0 to 1"),
            "label_smoothing": (self.label_smoothing < 1, "a share from 0 to below 1"),
            "spike": (self.spike == 0 or self.spike > 1, "0 or a ratio above 1"),
            "ema": (self.ema < 1, "a decay from 0 to below 1"),
        }
        for name, (is_within, expected) in ranges.items():
            if not is_within:
                raise TrainingError(f"{place(self)}.{name}: expected {expected}, not {getattr(self, name)}")

    def _check_processes(self) -> None:
        where = place(self)
        if not isinstance(self.sync_batch_norm, bool):
            raise TrainingError(f"{where}.sync_batch_norm: expected true or false, not {self.sync_batch_norm!r}")
        if self.world > 1 and self.accelerator not in ("auto", "cpu", "cuda"):
            raise TrainingError(
                f"{where}.accelerator: {self.accelerator} is one device, and {self.world} processes need one each; "
                f"write cuda, cpu or auto"
            )
        multiple = self.world if self.world == 1 or not self.augmentation.mixes else 2 * self.world
        if self.batch_size % multiple:
            pairs = "pairs of images that are mixed" if multiple > self.world else "images"
            raise TrainingError(
                f"{where}.batch_size: the {pairs} among {self.batch_size} cannot be divided equally among {self.world} "
                f"processes; choose a multiple of {multiple}"
            )

    @property
    def identity(self) -> str:
        """Text of all parameters that influence the result.

        Parameters with their default values are left out, so that a later version may add a parameter, with a default
        that changes nothing, and still continue a training that an earlier version began.
        """
        return said(self._identified())

    def _identified(self: Config) -> Config:
        """The same parameters as they act here, and without parameters that do not influence the result.

        The kind of the accelerator counts and its number does not; the number of processes counts, and on how many
        machines they run does not. A micro-batch as large as a process's part of the batch is none.
        """
        kind = accelerator.resolve(self.accelerator).type
        return replace(
            self,
            checkpoint_seconds=0.0,
            precision=resolve(self.precision, kind),
            accelerator=kind,
            micro_batch=self.micro_batch if self.micro_batch < self.batch_size // self.world else 0,
            processes=self.world,
            nodes=1,
            sync_batch_norm=self.sync_batch_norm or self.world == 1,
        )

    @classmethod
    def from_section(cls: type[Config], section: Mapping[str, Any]) -> Config:
        """Reads a section of the configuration; nested sections become nested parameters.

        Raises:
            TrainingError: a key is unknown or missing, or a value is out of range.
        """
        if not isinstance(section, Mapping):
            raise TrainingError(f"{cls.SECTION}: expected a mapping of parameters, not {section!r}")
        nested, where = cls.NESTED, cls.SECTION
        values = {
            key: read_section(nested[key], value, f"{where}.{key}", TrainingError) if key in nested else value
            for key, value in section.items()
        }
        return read_section(cls, values, where, TrainingError)
