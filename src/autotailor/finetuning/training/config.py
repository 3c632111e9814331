"""Parameters that every training loop has."""

from dataclasses import MISSING, Field, field, fields, is_dataclass, replace
from typing import Annotated, Any, Self

from autotailor.compute import accelerator
from autotailor.compute.accelerator import Accelerator
from autotailor.data.augmentation.config import AugmentationConfig
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.training.optimizers import names
from autotailor.finetuning.training.precision import PRECISIONS, resolve
from autotailor.sections import Section
from autotailor.values import Bound, Flag, Natural, NotNegative, OneOf, Positive, UnfitError


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


class LoopConfig(Section, of="training", error=TrainingError, kw_only=True):
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

    epochs: Natural
    batch_size: Annotated[int, Bound(ge=2)] = 64
    optimizer: Annotated[str, OneOf(listed=names)] = "adamw"
    lr: Annotated[float, Bound(gt=0, expected="a rate above 0 (where nothing is to be trained, 0 epochs)")] = 4e-3
    warmup: Annotated[float, Bound(ge=0, le=1, expected="a share of the steps from 0 to 1")] = 0.05
    weight_decay: NotNegative = 0.02
    label_smoothing: Annotated[float, Bound(ge=0, lt=1, expected="a share from 0 to below 1")] = 0.1
    gradient_norm: NotNegative = 0.0
    seed: Natural = 0
    threads: Positive = 1
    precision: Annotated[str, OneOf(*PRECISIONS)] = "fp32"
    accelerator: Accelerator = "cpu"
    processes: Positive = 1
    nodes: Positive = 1
    sync_batch_norm: Flag = True
    micro_batch: Natural = 0
    ema: Annotated[float, Bound(ge=0, lt=1, expected="a decay from 0 to below 1")] = 0.0
    augmentation: AugmentationConfig = field(default_factory=AugmentationConfig)
    checkpoint_seconds: NotNegative = 300.0
    spike: NotNegative = field(default=0.0, repr=False)  # not part of ``identity``

    def __post_init__(self) -> None:
        if 0 < self.spike <= 1:
            raise UnfitError("spike", f"expected 0 or a ratio above 1, not {self.spike}")
        if self.world > 1 and self.accelerator not in ("auto", "cpu", "cuda"):
            raise UnfitError(
                "accelerator",
                f"{self.accelerator} is one device, and {self.world} processes need one each; write cuda, cpu or auto",
            )
        multiple = self.world if self.world == 1 or not self.augmentation.mixes else 2 * self.world
        if self.batch_size % multiple:
            pairs = "pairs of images that are mixed" if multiple > self.world else "images"
            raise UnfitError(
                "batch_size",
                f"the {pairs} among {self.batch_size} cannot be divided equally among {self.world} processes; choose "
                f"a multiple of {multiple}",
            )

    @property
    def world(self) -> int:
        """Number of all processes that train together."""
        return self.processes * self.nodes

    @property
    def identity(self) -> str:
        """Text of all parameters that influence the result.

        Parameters with their default values are left out, so that a later version may add a parameter, with a default
        that changes nothing, and still continue a training that an earlier version began.
        """
        return said(self._identified())

    def _identified(self) -> Self:
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
