"""Parameters of pretraining, weight-shared finetuning, and the uniformly scaled networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from autotailor.accuracy.config import CalibrationConfig
from autotailor.finetuning import sampling as strategies
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.training.config import LoopConfig, at_least, changes, not_negative, said
from autotailor.sections import place


@dataclass(frozen=True)
class DistillationConfig:
    """Learning from the original network.

    Attributes:
        weight: of the teacher's soft labels; the true labels get the rest.
        temperature: both logits are divided by it.
    """

    weight: float = 0.7
    temperature: float = 1.0

    def __post_init__(self) -> None:
        not_negative(self, "weight", "temperature")
        if self.weight > 1:
            raise TrainingError(f"{place(self)}.weight: expected a share from 0 to 1, not {self.weight}")
        if self.temperature == 0:
            raise TrainingError(f"{place(self)}.temperature: expected a number above 0, not {self.temperature}")


@dataclass(frozen=True, kw_only=True)
class WatchConfig:
    """Accuracy of a network during its training; it does not influence the result.

    Attributes:
        every: epochs between two measurements; the first and the last epoch are measured, too. 0 measures nothing.
        images: images of the validation set, spread evenly over it.
    """

    every: int = 4
    images: int = 256

    def __post_init__(self) -> None:
        at_least(self, every=0, images=1)


@dataclass(frozen=True, kw_only=True)
class PanelConfig(WatchConfig):
    """Accuracies of both ends of the space and of random SubNets during training.

    Before each measurement a SubNet is recalibrated on as many of the images of ``calibration``.

    Attributes:
        subnets: random SubNets, the same at each measurement.
    """

    subnets: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, subnets=1)


KEEP = ("last", "best")
LARGEST = "largest"
"""As ``finetune.teacher``: the largest SubNet teaches all others, as it is at each step."""


@dataclass(frozen=True, kw_only=True)
class WatchedConfig(LoopConfig):
    """Training of one network, whose accuracy is measured meanwhile.

    Attributes:
        panel: accuracy of the network during its training. The result does not depend on it.
        keep: state that the training ends in, the last one or the one of the highest accuracy that ``panel`` measured
            (of the network, or the mean of the random SubNets).
        resume_from: checkpoint of another training of the same network, with the same data, batch size and optimizer,
            from which this one goes on, for instance with a smaller ``lr``. The error of a training that diverged names
            it.
    """

    NESTED: ClassVar[Mapping[str, type[Any]]] = {**LoopConfig.NESTED, "panel": WatchConfig}

    panel: WatchConfig = field(default_factory=WatchConfig, repr=False)  # not part of ``identity``
    keep: str = field(default="last", repr=False)  # not part of ``identity``
    resume_from: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        where = place(self)
        if self.keep not in KEEP:
            raise TrainingError(f"{where}.keep: unknown state {self.keep!r}; known are {', '.join(KEEP)}")
        if self.keep == "best" and not self.panel.every:
            raise TrainingError(
                f"{where}.keep: best needs accuracies to choose by; set {where}.panel.every to 1 or more, or keep: last"
            )
        if not isinstance(self.resume_from, str | None):
            raise TrainingError(f"{where}.resume_from: expected a path or null, not {self.resume_from!r}")


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(WatchedConfig):
    """Training of the original network from scratch, with labels and without a teacher."""

    SECTION: ClassVar[str] = "model.pretrain"


@dataclass(frozen=True, kw_only=True)
class FinetuneConfig(WatchedConfig):
    """Weight-shared training.

    Attributes:
        name: name of the file in ``conf/finetune``, for people.
        strategy: which SubNets each step trains, ``alternating``, ``compofa``, ``mixed``, ``progressive``, ``sandwich``
            or ``uniform``.
        sampling: parameters of the strategy. Only ``mixed`` has some, which follow.
        subnets: SubNets that each step trains. ``sandwich`` needs 3, the largest, the smallest and one between, and
            ``alternating`` 2.
        workers: SubNets that run side by side. Results do not depend on it.
        sort: whether channels are sorted by importance once before training.
        distillation: how SubNets learn from the original network.
        calibration: BatchNorm statistics are estimated anew for every SubNet that is evaluated or exported.
        teacher: network that teaches in place of the original one, as ``timm:NAME`` or ``package.module:factory``, with
            its own weights. It must have the classes of the data. One of timm gets images in its own resolution, mean
            and std. ``largest`` lets the largest SubNet of each step teach the others.
        loss: function ``package.module:function`` of (logits, labels, teacher's logits, config) that takes the place of
            distillation ([a page on it](../extending/loss.md)).
        layer_decay: factor of the learning rate from each layer (a block, or an operator outside of blocks) to the one
            before it; 0.75 is usual for transformers. 1 is one rate for all.
        accept_chance: train also where the original network knows no more of the data than chance.
        compile: whether the teacher computes with kernels of ``torch.compile``, which needs a C++ compiler, on a GPU
            Triton. It saves a part of each step and costs seconds to minutes at the beginning; results differ by
            rounding.
        panel: accuracies of the largest, the smallest and some random SubNets during training, each recalibrated. The
            result does not depend on them.
    """

    NESTED: ClassVar[Mapping[str, type[Any]]] = {
        **LoopConfig.NESTED,
        "calibration": CalibrationConfig,
        "distillation": DistillationConfig,
        "panel": PanelConfig,
    }
    SECTION: ClassVar[str] = "finetune"

    name: str = ""
    strategy: str = "sandwich"
    sampling: Mapping[str, Any] = field(default_factory=dict)
    subnets: int = 4
    workers: int = 1
    sort: bool = True
    distillation: DistillationConfig = field(default_factory=DistillationConfig)
    calibration: CalibrationConfig = field(default_factory=CalibrationConfig)
    teacher: str | None = None
    loss: str | None = None
    layer_decay: float = 1.0
    accept_chance: bool = field(default=False, repr=False)  # not part of ``identity``
    compile: bool = False
    panel: PanelConfig = field(default_factory=PanelConfig, repr=False)  # not part of ``identity``

    @property
    def identity(self) -> str:
        changed = changes(strategies.parameters(self.strategy, self.sampling))
        return said(replace(self._identified(), workers=1, sampling=changed))

    def __post_init__(self) -> None:
        super().__post_init__()
        where = place(self)
        at_least(self, subnets=1, workers=1)
        not_negative(self, "layer_decay")
        for name, value in (("teacher", None if self.teacher == LARGEST else self.teacher), ("loss", self.loss)):
            if value is not None and not (isinstance(value, str) and all(value.partition(":"))):
                raise TrainingError(f"{where}.{name}: expected null or a name with a colon, not {value!r}")
        if not 0 < self.layer_decay <= 1:
            raise TrainingError(f"{where}.layer_decay: expected above 0 and at most 1, not {self.layer_decay}")
        strategies.parameters(self.strategy, self.sampling)  # raises where the strategy or a parameter is unknown
        strategies.check_count(self.strategy, self.subnets)
        for name, flag in (("sort", self.sort), ("accept_chance", self.accept_chance), ("compile", self.compile)):
            if not isinstance(flag, bool):
                raise TrainingError(f"{where}.{name}: expected true or false, not {flag!r}")


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

    NESTED: ClassVar[Mapping[str, type[Any]]] = {**LoopConfig.NESTED, "distillation": DistillationConfig}
    SECTION: ClassVar[str] = "compare"

    epochs: int = 0
    images: int = 0
    lrs: tuple[float, ...] = (2e-3, 4e-3, 8e-3)
    resolution: int = 0
    distillation: DistillationConfig = field(default_factory=DistillationConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, images=0, resolution=0)
        if not self.lrs or any(not isinstance(lr, int | float) or not lr > 0 for lr in self.lrs):
            raise TrainingError(f"ScaledConfig.lrs: expected learning rates above 0, not {self.lrs!r}")
        if len(set(self.lrs)) != len(self.lrs):
            raise TrainingError(f"ScaledConfig.lrs: {self.lrs} lists a learning rate twice")
        if not self.epochs and not self.images:
            raise TrainingError("ScaledConfig: set images to the number of images that the SuperNet saw, or set epochs")
