"""Parameters of pretraining, of weight-shared finetuning, of alternatives, and of uniformly scaled networks."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated, Any

from autotailor.accuracy.config import CalibrationConfig
from autotailor.finetuning import sampling as strategies
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.training.config import LoopConfig, changes, said
from autotailor.ir.junctions import ORIGINAL
from autotailor.sections import Section
from autotailor.values import AboveZero, Bound, Flag, Natural, OneOf, Positive, Share, UnfitError


class DistillationConfig(Section, of="distillation", error=TrainingError):
    """Learning from the original network.

    Attributes:
        weight: of the teacher's soft labels; the true labels get the rest.
        temperature: both logits are divided by it.
    """

    weight: Share = 0.7
    temperature: AboveZero = 1.0


class WatchConfig(Section, of="panel", error=TrainingError, kw_only=True):
    """Accuracy of a network during its training; it does not influence the result.

    Attributes:
        every: epochs between two measurements; the first and the last epoch are measured, too. 0 measures nothing.
        images: images of the validation set, spread evenly over it.
    """

    every: Natural = 4
    images: Positive = 256


class PanelConfig(WatchConfig, kw_only=True):
    """Accuracies of both ends of the space and of random SubNets during training.

    Before each measurement a SubNet is recalibrated on as many of the images of ``calibration``.

    Attributes:
        subnets: random SubNets, the same at each measurement.
    """

    subnets: Positive = 4


KEEP = ("last", "best")
NAMED, SOURCES = "[^:]+:.+", ("timm:NAME", "package.module:factory")
"""How what is named with its module is written, and how the source of a network is."""
LARGEST = "largest"
"""As ``finetune.teacher``: the largest SubNet teaches all others, as it is at each step."""


class WatchedConfig(LoopConfig, kw_only=True):
    """Training of one network, whose accuracy is measured meanwhile.

    Attributes:
        panel: accuracy of the network during its training. The result does not depend on it.
        keep: state that the training ends in, the last one or the one of the highest accuracy that ``panel`` measured
            (of the network, or the mean of the random SubNets).
        resume_from: checkpoint of another training of the same network, with the same data, batch size and optimizer,
            from which this one goes on, for instance with a smaller ``lr``. The error of a training that diverged names
            it.
    """

    panel: WatchConfig = field(default_factory=WatchConfig, repr=False)  # not part of ``identity``
    keep: Annotated[str, OneOf(*KEEP)] = field(default="last", repr=False)  # not part of ``identity``
    resume_from: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keep == "best" and not self.panel.every:
            raise UnfitError("keep", "best needs accuracies to choose by; set panel.every to 1 or more, or keep: last")


class PretrainConfig(WatchedConfig, of="model.pretrain", kw_only=True):
    """Training of the original network from scratch, with labels and without a teacher."""


class StageConfig(Section, of="finetune.stages", error=TrainingError):
    """A stage before the data of the task: SubNets learn the given network's features (AdaptiveNet, section 6).

    Attributes:
        data: name of a file in ``conf/data``, or a section. Labels are not looked at, and pictures are prepared with
            the resolution, the mean and the std of the task's.
        images: training pictures that the stage shows at least.
    """

    data: str | Mapping[str, Any]
    images: Positive


class FinetuneConfig(WatchedConfig, of="finetune", kw_only=True):
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
        stages: trainings that come first, each on so many ``images`` of ``data``, a file of ``conf/data`` whose labels
            are not looked at: SubNets learn the features of the given network.
        loss: function ``package.module:function`` of (logits, labels, teacher's logits, config) that takes the place of
            distillation ([a page on it](../extending/loss.md)).
        freeze: ``original`` trains the weights of alternatives alone (AdaptiveNet, section 4.2): all that the given
            network reads stays, statistics of BatchNorm too, so that it is in the space as it was.
        layer_decay: factor of the learning rate from each layer (a block, or an operator outside of blocks) to the one
            before it; 0.75 is usual for transformers. 1 is one rate for all.
        accept_chance: train also where the original network knows no more of the data than chance.
        compile: whether the teacher computes with kernels of ``torch.compile``, which needs a C++ compiler, on a GPU
            Triton. It saves a part of each step and costs seconds to minutes at the beginning; results differ by
            rounding.
        panel: accuracies of the largest, the smallest and some random SubNets during training, each recalibrated. The
            result does not depend on them.
    """

    name: str = ""
    strategy: str = "sandwich"
    sampling: Mapping[str, Any] = field(default_factory=dict)
    subnets: Positive = 4
    workers: Positive = 1
    sort: Flag = True
    distillation: DistillationConfig = field(default_factory=DistillationConfig)
    calibration: CalibrationConfig = field(default_factory=CalibrationConfig)
    teacher: Annotated[str, OneOf(LARGEST, *SOURCES, pattern=f"^({LARGEST}|{NAMED})$")] | None = None
    stages: tuple[StageConfig, ...] = field(default=(), repr=False)  # weights are part of a training's fingerprint
    loss: Annotated[str, OneOf("package.module:function", pattern=f"^{NAMED}$")] | None = None
    freeze: Annotated[str, OneOf(ORIGINAL)] | None = None
    layer_decay: Annotated[float, Bound(gt=0, le=1, expected="a number above 0 and at most 1")] = 1.0
    accept_chance: Flag = field(default=False, repr=False)  # not part of ``identity``
    compile: Flag = False
    panel: PanelConfig = field(default_factory=PanelConfig, repr=False)  # not part of ``identity``

    @property
    def identity(self) -> str:
        changed = changes(strategies.parameters(self.strategy, self.sampling))
        return said(replace(self._identified(), workers=1, sampling=changed))

    def __post_init__(self) -> None:
        super().__post_init__()
        strategies.parameters(self.strategy, self.sampling)  # raises where the strategy or a parameter is unknown
        strategies.check_count(self.strategy, self.subnets)


class DistilConfig(LoopConfig, of="distil", kw_only=True):
    """Training of alternatives of blocks, each towards what its block says.

    Attributes:
        epochs: follows from ``images``.
        images: training pictures that are seen, if weights arrive trained; 0 keeps alternatives in closed form.
        own_path: share of them on which alternatives are trained where SubNets have them, after each was trained alone.
    """

    epochs: Natural = 0
    images: Natural = 0
    own_path: Share = 0.5


class ScaledConfig(LoopConfig, of="compare", kw_only=True):
    """Training of a uniformly scaled network for comparison.

    Attributes:
        epochs: smallest number of epochs; training lasts until both ``epochs`` and ``images`` are reached.
        images: smallest number of training images; for a fair comparison, as many as the SuperNet saw in pretraining
            and finetuning together.
        lrs: learning rates that are tried; the accuracy on the validation set decides. ``lr`` is not used.
        resolution: side to which images are resized, in pixels; 0 leaves their size.
        distillation: from the original network.
    """

    epochs: Natural = 0
    images: Natural = 0
    lrs: tuple[AboveZero, ...] = (2e-3, 4e-3, 8e-3)
    resolution: Natural = 0
    distillation: DistillationConfig = field(default_factory=DistillationConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.lrs or len(set(self.lrs)) != len(self.lrs):
            raise UnfitError("lrs", f"expected learning rates above 0, each once, not {self.lrs!r}")
        if not self.epochs and not self.images:
            raise UnfitError("images", "expected the number of images that the SuperNet saw; set it, or set epochs")
