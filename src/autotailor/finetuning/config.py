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
        weight: of the teacher's soft labels, between 0 and 1; the true labels get the rest.
        temperature: by which the logits of teacher and student are divided.
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
        images: of the validation set, spread evenly over it.
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
        panel: accuracy during training.
        keep: the state of the network that is kept: ``last``, or ``best`` by the accuracy that ``panel`` measures.
        resume_from: checkpoint of another training of the same network with the same data, batch size and optimizer,
            from whose position this training goes on, for instance with a smaller ``lr``.
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
        name: of the file in conf/finetune, for the reader.
        strategy: name of the sampling strategy (``autotailor.finetuning.sampling``) that draws each step's SubNets.
        sampling: parameters of the strategy by name (``autotailor.finetuning.sampling.parameters``).
        subnets: SubNets that each step trains, including the largest and the smallest one of the sandwich.
        workers: SubNets that run side by side; results do not depend on their number.
        sort: whether channels are sorted by importance once before training.
        distillation: from the original network; a strategy with in-place distillation uses it for the largest SubNet.
        calibration: of every SubNet that is evaluated or exported.
        teacher: ``timm:NAME`` or ``module:factory`` of a network that teaches in place of the original one
            (``external_teacher``); ``largest`` lets the largest SubNet, as it is at each step, teach the others, and
            the original network teach the largest (in-place distillation; Yu et al., BigNAS, 2020).
        loss: ``module:function`` that takes the place of distillation (``loss``).
        layer_decay: factor of the learning rate from one layer to the one before it (``layer_decay``); 1 for one rate.
        accept_chance: whether training starts even where the original network classifies the data no better than
            chance (``autotailor.finetuning.teacher``); it does not influence the result.
        compile: whether the teacher computes with kernels of ``torch.compile`` (``compute.compilation``); SubNets do
            not, because each step would need others.
        panel: accuracies of several SubNets during training; ``keep`` goes by the mean of the random ones.
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
