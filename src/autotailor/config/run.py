"""What ``conf/`` composes to: one typed object, whose sections are those that the packages read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema

from autotailor.accuracy.config import MomentsConfig
from autotailor.compute.accelerator import Accelerator
from autotailor.config.cluster import Cluster
from autotailor.config.names import ConfigError
from autotailor.config.recipe import Recipe
from autotailor.exits.config import ExitsConfig
from autotailor.finetuning.config import DistilConfig, FinetuneConfig, PretrainConfig
from autotailor.finetuning.polishing.config import PolishConfig
from autotailor.finetuning.training.precision import PRECISIONS
from autotailor.measurement.config import CompareConfig, ConfirmEffort, Effort, Rounds
from autotailor.pool.config import PoolConfig
from autotailor.profiling.networks.promise import Promise
from autotailor.search.config import SearchConfig
from autotailor.search.cost import cost_of_device
from autotailor.sections import Section
from autotailor.sensitivity.config import SensitivityConfig
from autotailor.values import AboveZero, Bound, Natural, OneOf, Positive, Told, UnfitError

LIMITS = frozenset({"device.drift", "device.max_minutes", "profile.max_minutes"})
"""Keys in which infinity means that there is no limit."""
UNREAD = frozenset({"data.arguments", "device.options"})
"""Keys whose values go to a function of the user or to a runtime as they are."""
MOST_BUDGETS = 99
ONE_BUDGET = {"type": ["number", "string", "object"]}
CHOICES = {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "object"}, {"type": "null"}]}


def _is_budget(value: object) -> bool:
    if isinstance(value, Mapping):
        return bool(value) and all(_is_budget(limit) and not isinstance(limit, Mapping) for limit in value.values())
    return isinstance(value, int | float | str) and not isinstance(value, bool)


def _budgets(value: object) -> object:
    """A number of budgets, or a list of them; what is no budget at all is refused here, and by ``search`` the rest."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_BUDGETS:
        return value
    listed = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    if 1 <= len(listed) <= MOST_BUDGETS and all(map(_is_budget, listed)):
        return value
    hint = f"; a single value stands in a list as well: {json.dumps([value])}" if _is_budget(value) else ""
    raise UnfitError("", f"expected a whole number from 1 to {MOST_BUDGETS} or a list of budgets, not {value!r}{hint}")


class SpaceConfig(Section, of="model.space", error=ConfigError):
    """What may change in the network; ``ir.proposal.request`` reads the choices.

    Attributes:
        divisor: widths are rounded to a multiple of this number.
        resolution: sides of the images that the SubNets take, as a list or as ``{from, to, step}``. Left out, the
            resolution stays.
        depth: numbers of blocks removed from the end of a stage. A list holds for all stages that can take all of it;
            names of stages with lists hold for these (``"*"`` for all others).
        width: widths of the stem and the stages, as shares of the original width, by stage as for ``depth``. The width
            of the head changes only where ``head`` is named.
        scale: shares of the original width, in place of those: one choice for the stem, all stages and the hidden
            channels of all blocks.
        blocks: choices inside blocks, by the kind of block (``Bottleneck``) or by the name of one (``block7``):
            ``expand_ratio``, ``kernel_size``, ``v_scale``. ``python -m autotailor inspect`` lists what a network's
            blocks have.
        alternatives: what may stand in for the maps of blocks, by kind. ``low_rank: [0.75, 0.5]`` offers pairs of
            factors that take these shares of a map's multiply-accumulates, ``depthwise: true`` a depthwise convolution
            with a map of single pixels behind it for each dense convolution, ``shrunk: [0.5]`` blocks with this share
            of their hidden channels, ``ghost: [2]`` blocks that compute half of their hidden channels from the others,
            ``fire: true`` blocks whose large kernels read few channels, ``merged: [1, 2]`` one block in place of two
            and of three, which spares one and two. Under ``blocks`` they stand by kind or name of block, in place
            of those for all; merged blocks by the first of theirs.
        skip: variables that are left out, as shell patterns (``"stem.*"``).
        exits: early exits of the exported SubNets of a classifier (see below); none by default.
    """

    divisor: Positive = 8
    resolution: Annotated[Any, WithJsonSchema(CHOICES)] = None
    depth: Annotated[Any, WithJsonSchema(CHOICES)] = None
    width: Annotated[Any, WithJsonSchema(CHOICES)] = None
    scale: Annotated[Any, WithJsonSchema(CHOICES)] = None
    blocks: Mapping[str, Any] | None = None
    alternatives: Mapping[str, Any] | None = None
    skip: tuple[str, ...] = ()
    exits: ExitsConfig | None = None


class ModelConfig(Section, of="model", error=ConfigError, kw_only=True):
    """The network.

    Attributes:
        name: name of the model in results and reports.
        source: the network, as ``timm:NAME``, as ``package.module:factory`` (a function that makes the ``nn.Module``),
            or as the path of an ``.onnx`` file.
        weights: ``pretrain`` (the workflow trains the network), the path of a checkpoint (``.pt``, ``.safetensors``),
            or null for the weights that come with the source.
        resolution: side of the images in pixels. Null takes ``data.resolution``.
        num_classes: number of outputs that the network is made with. Null takes it from the source.
        batch_norm: what becomes of BatchNorm that an ``.onnx`` file has folded into its weights. ``auto`` puts it back
            where the file records that it was there, ``reinsert`` behind every convolution with a bias, ``keep``
            nowhere.
        output: the output to keep, where the network returns several: its name in a mapping, a named tuple or an ONNX
            file (such as ``logits`` of Hugging Face's networks), or its position in a tuple, from 0; or a list of
            them. In an ONNX file it may be a tensor within the graph, such as the raw heads of a detector that
            suppresses its boxes itself. Null keeps all.
        pretrain: how the original network is trained where ``weights`` is ``pretrain`` (see below); null elsewhere.
        space: what may change in the network (see below).
    """

    name: str
    source: str
    weights: str | None
    resolution: Positive | None
    num_classes: Annotated[int, Bound(ge=1)] | None
    batch_norm: Annotated[str, OneOf("auto", "reinsert", "keep")] = "auto"
    output: Annotated[
        str | Natural | tuple[str | Natural, ...] | None, Told("a name, a position from 0, a list of them, or null")
    ] = None
    pretrain: Annotated[PretrainConfig | None, BeforeValidator(lambda given: given or None)]
    space: SpaceConfig


class ProfileConfig(Section, of="profile", error=ConfigError):
    """Measuring of operators.

    Attributes:
        store: folder of the LUT store, which keeps every measurement for all runs and models. ``~`` is the home folder.
        max_minutes: time budget of the rule ``profile``, in minutes, that of the device. The operators that the space
            uses most come first. ``.inf`` sets no limit. Null where there is no device.
        lut: path of a ``lut.csv`` that stands for the device, so that nothing is measured. ``--config lut=PATH`` sets
            it.
    """

    store: Annotated[str, Told("the path of a folder", bool)]
    max_minutes: Annotated[float, Bound(gt=0, limitless=True, expected="a positive number of minutes")] | None
    lut: Annotated[str, Told("the path of a lut.csv, or null", bool)] | None


class ValidateConfig(Section, of="validate", error=ConfigError):
    """Whole SubNets: predicted against measured latency.

    Attributes:
        subnets: random SubNets that are measured whole, to compare predicted with measured latencies.
        rounds: how often each of these SubNets is measured. A single round can be off as a whole.
        attempts: how often all rounds are measured at most, while the promise is broken and the machine was too
            restless to tell whether the predictor is to blame. The quietest attempt counts.
        seed: of the choice of these SubNets.
        promise: the run and the report warn where fewer SubNets than ``share`` are predicted within ``error``.
    """

    subnets: Annotated[int, Bound(ge=2)]
    rounds: Rounds
    attempts: Annotated[int, Bound(ge=1, le=10)]
    seed: Natural
    promise: Promise


class ExportConfig(Section, of="export", error=ConfigError):
    """What is exported.

    Attributes:
        budgets: latency budgets of the exported SubNets ``budget_01``, ``budget_02`` ... A number spreads so many
            budgets over the reachable latencies; a list names each in milliseconds, as a share of the largest SubNet
            (``"48%"``) or as a throughput (``"30/s"``). With ``device=macs`` they are budgets of MACs in millions, also
            written ``"300M"`` or ``"1.2G"``. A budget of several limits is a mapping such as ``{latency: "30/s",
            peak_memory: 20, parameters: "50%"}``: the SubNet keeps all of them, and names are ``latency`` (always),
            ``energy`` in mJ, ``peak_memory`` in MiB, ``parameters`` and ``macs`` in millions. With
            ``model.space.exits``, ``{latency.expected: "60%", latency.worst: "110%"}`` limits what pictures cost that
            may leave early, in the mean and (where it is said) at most.
        tolerance: largest relative difference between an export's outputs and the SuperNet's.
    """

    budgets: Annotated[
        Any,
        PlainValidator(_budgets),
        WithJsonSchema(
            {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 99}, {"type": "array", "items": ONE_BUDGET}]}
        ),
    ]
    tolerance: AboveZero


class RunConfig(Section, error=ConfigError, kw_only=True):
    """All parameters of a run.

    Attributes:
        seed: everything random starts from this number. Sections take it over unless they name a seed of their own.
        threads: PyTorch's threads in training and evaluation. The number belongs to the configuration because sums of
            floating-point numbers depend on it.
        accelerator: what trains and evaluates networks, ``cpu``, ``cuda``, ``cuda:1`` (the second GPU) or ``mps``.
            ``auto`` takes CUDA, else MPS, else the processor. It is not called ``device``, because that is the target
            device, for which networks are tailored.
        processes: processes that train together on each machine, in pretraining, fine-tuning, polishing and the
            training of a pool's members, each with its part of every batch. ``model.pretrain.processes``,
            ``finetune.processes`` (also of a pool's members) and ``polish.processes`` hold for one of them alone. On
            CUDA each needs a GPU of its own. The curve is that of one process with the same batch, up to rounding.
        nodes: machines that train together, with so many ``processes`` each. A job of Slurm starts them.
        precision: of training. ``auto`` is mixed precision with bfloat16 where the processor or the GPU computes in
            bfloat16, with float16 on other CUDA GPUs, else ``fp32``. Evaluation always computes in fp32.
        workers: SubNets that run side by side on the processor, in fine-tuning and while sensitivities are measured.
            Results do not depend on it. On an accelerator SubNets run in turn.
        model: the network.
        device: the target device (``profiling.DeviceConfig``, or ``search.Counting`` without one).
        data: pictures and labels (``data.datasets``).
        finetune: training of the SuperNet.
        search: search of the front.
        polish: training of single SubNets.
        pool: SubNets that share one file.
        moments: what weights that arrive trained read.
        distil: training of alternatives of blocks.
        sensitivity: accuracy of single modifications.
        profile: measuring of operators.
        validate: predicted and measured latencies.
        confirm: timing of candidates.
        measure: timing of exports.
        export: what is exported.
        compare: scaled networks.
        recipe: factors of the other sections.
        method: name of the file in ``conf/method``, for people. ``autotailor`` leaves the other keys as they are;
            ``adaptivenet``, ``legodnn``, ``adascale`` and ``uniform`` take space, training and search as other papers
            have them (``autotailor run method=legodnn``).
        cluster: what jobs get where they are computed.
    """

    seed: Natural
    threads: Positive
    accelerator: Accelerator
    processes: Positive
    nodes: Positive
    precision: Annotated[str, OneOf(*PRECISIONS)]
    workers: Positive
    model: ModelConfig
    device: Mapping[str, Any]
    data: Mapping[str, Any]
    moments: MomentsConfig
    distil: DistilConfig
    finetune: FinetuneConfig
    search: SearchConfig
    polish: PolishConfig
    pool: PoolConfig
    profile: ProfileConfig
    sensitivity: SensitivityConfig
    validate: ValidateConfig
    confirm: ConfirmEffort
    measure: Effort
    export: ExportConfig
    compare: CompareConfig
    recipe: Recipe = field(default_factory=Recipe)
    method: str = "autotailor"
    cluster: Cluster = field(default_factory=lambda: Cluster("local"))

    def __post_init__(self) -> None:
        kinds = () if "cost" in self.device else ("device.transport", "device.runtime")
        for place in ("device.name", *kinds, "data.name"):
            section, key = place.split(".")
            if not isinstance(value := getattr(self, section).get(key), str):
                raise UnfitError(place, f"expected a text, as the files of conf/{section} have it, not {value!r}")


def validate(composed: Mapping[str, Any]) -> RunConfig:
    """Reads a composed configuration; a file or a device is not asked for.

    Raises:
        AutoTailorError: a key is unknown or missing, or a value cannot be used; the message names the first one.
    """
    for place, number in _not_finite(composed):
        limitless, finite = "but has to be a number (infinity sets no limit)", "but has to be a finite number"
        raise ConfigError(f"conf: {place} is {number}, {limitless if place in LIMITS else finite}")
    run = RunConfig.from_section(composed)
    if "calibration" not in composed["finetune"]:
        raise ConfigError("finetune: missing keys ['calibration']")
    cost_of_device(run.device)
    return run


def _not_finite(value: object, place: str = "") -> Iterator[tuple[str, float]]:
    """The places and values of NaN, and of infinity where it sets no limit."""
    if isinstance(value, float) and not math.isfinite(value) and not (value == math.inf and place in LIMITS):
        yield place, value
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        if (below := f"{place}.{key}" if place else str(key)) not in UNREAD:
            yield from _not_finite(each, below)
