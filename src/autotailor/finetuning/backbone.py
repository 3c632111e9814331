"""Stages before the data of the task: a SuperNet learns the given network's features on other pictures.

Networks for detection or segmentation are often trained twice: their backbone on a large data set, head and all on a
small one. AdaptiveNet (section 6) makes the backbone elastic on the first set with features as targets, and the whole
on the second. Here SubNets are drawn as in the training on the second set, and each learns what the blocks of the given
network hand on, and what its last map reads, for the same pictures (``polishing.features``). So pictures need no
labels, and what comes behind the last of these tensors is not trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from autotailor.accuracy.calibration import Calibrator, resolution_of
from autotailor.accuracy.determinism import deterministic
from autotailor.accuracy.fingerprint import fingerprint
from autotailor.compute.accelerator import resolve
from autotailor.data.augmentation.stream import augmented
from autotailor.data.splits import DataSplits, sized
from autotailor.finetuning import sampling
from autotailor.finetuning.config import FinetuneConfig, StageConfig
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.layer_decay import learning_rate_scales
from autotailor.finetuning.polishing.config import Round
from autotailor.finetuning.polishing.features import feature_loss, featured, features_of
from autotailor.finetuning.pretraining import check_network
from autotailor.finetuning.sampling.strategy import Strategy, stages_of
from autotailor.finetuning.teacher import question
from autotailor.finetuning.training.later_epochs import LaterEpochs
from autotailor.finetuning.training.loop import train
from autotailor.finetuning.training.precision import forward
from autotailor.finetuning.training.processes.group import join
from autotailor.finetuning.training.states.contents import Row
from autotailor.finetuning.training.watch import Record, Watch, behind, no_record
from autotailor.finetuning.weight_sharing import Begun, WeightSharing, freeze
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from autotailor.task.registry import of

PARTS = 4
"""Parts of a stage, as epochs are counted."""
SAME = 1e-6
"""Largest difference of two means or deviations that count as the same."""
Features = dict[str, torch.Tensor]


def begin(
    net: SuperNet,
    firsts: Sequence[DataSplits],
    data: DataSplits,
    config: FinetuneConfig,
    workdir: Path,
    record: Record = no_record,
) -> Begun | None:
    """Trains the shared weights towards the given network's features on each of several data sets.

    Goes on from checkpoints in ``workdir``.

    Args:
        net: the SuperNet; it is not changed. Its largest SubNet is the given network.
        firsts: data of each of ``config.stages``; labels are not looked at.
        data: of the task, whose pictures the network knows.
        config: of the training.
        workdir: folder of the checkpoints; made if missing.
        record: takes the metrics of each epoch as soon as the epoch ends.

    Returns:
        The SuperNet with which the training on the task's own data begins; None without stages.

    Raises:
        TrainingError: pictures do not fit the network, the network does not know the task's data or has no features to
            learn, or the loss is no longer a finite number.
    """
    if not config.stages:
        return None
    for first in firsts:
        check_fit(first, data)
    join(config)
    device = resolve(config.accelerator)
    net = Calibrator(data, config.calibration).adopt(net, device)
    if config.sort and net.elastic.moments is None:
        net = net.sort_channels()
    teacher = Teacher.largest_of(net, device, logits=of(data).logits)
    check_network(teacher.network, data, teacher.resolution)
    with deterministic(config.threads, device):  # as the training behind the stages does, which hours may lie before
        question(teacher.network, data, teacher.resolution, config.accept_chance)
    if not config.freeze:  # given statistics are not those of trained weights
        net = net.recalibrated(1.0)
    module = net.module(logits=True).to(device)
    if config.freeze:
        freeze(module)
    history, images = list[Row](), 0
    for number, (stage, first) in enumerate(zip(config.stages, firsts, strict=True), 1):
        path, watch = Path(workdir) / f"finetune_stage_{number}.ckpt", Watch(record=behind(record, len(history)))
        rows, seen = _learn(net, module, teacher, stage, first, config, path, watch)
        history += [{**row, "epoch": len(history) + epoch} for epoch, row in enumerate(rows)]
        images += seen
    return Begun(net.absorb(module), history, images)


def _learn(
    net: SuperNet,
    module: ElasticModule,
    teacher: Teacher,
    stage: StageConfig,
    first: DataSplits,
    config: FinetuneConfig,
    path: Path,
    watch: Watch,
) -> tuple[list[Row], int]:
    """Trains a module on the pictures of one stage; one row for each epoch, and the number of images seen."""
    stages = stages_of(net.space, net.stages)
    strategy = sampling.create(config.strategy, net.space, stages, config.subnets, config.sampling, net.macs)
    dimensions = net.propagation.dimensions
    axes = {block.output: dimensions[block.output].index(block.width_out) for block in net.blocks}
    step = FeatureSharing(module, teacher, strategy, replace(config, teacher=None), axes)
    stream = augmented(first, config.augmentation, config.seed)
    epochs, most = Round(1, images=stage.images).parts(len(stream), PARTS, config.batch_size)
    part, loop = LaterEpochs(stream, 0, most), replace(config, epochs=epochs, keep="last")
    words = [path.stem, loop.identity, first.fingerprint, repr(net.space), *strategy.identity]
    identity, scales = fingerprint(words, module.state_dict()), learning_rate_scales(net, module, config.layer_decay)
    history = train(module, part, loop, step, path, identity, path.stem, watch, scales=scales)
    return history, len(history) * part.num_batches(config.batch_size) * min(config.batch_size, len(part))


def check_fit(first: DataSplits, data: DataSplits) -> None:
    """Raises TrainingError where the pictures of a first data set are no input of a network for the task's data."""
    where = f"finetune.stages: data {first.name} gives {first.read()}"
    if first.image() != data.image():
        raise TrainingError(
            f"{where} {list(first.image())}, and the network takes {data.read()} {list(data.image())}; name data that "
            "are prepared as those of the task"
        )
    pairs = zip((*first.mean, *first.std), (*data.mean, *data.std), strict=True)
    if max(abs(one - other) for one, other in pairs) > SAME:
        raise TrainingError(
            f"{where}, normalised by mean {list(first.mean)} and std {list(first.std)}, and the network was trained "
            f"with mean {list(data.mean)} and std {list(data.std)}: give both sections of data these numbers"
        )


class FeatureSharing(WeightSharing):
    """One step towards the features of the given network.

    Args:
        module: the SuperNet, on the device that trains.
        teacher: the given network, whose channels are in the same order.
        strategy: draws the SubNets of each step.
        config: of the training.
        axes: tensors that blocks hand on, and the axis of their channels.

    Raises:
        TrainingError: the network has no such tensors.
    """

    def __init__(
        self,
        module: ElasticModule,
        teacher: Teacher,
        strategy: Strategy,
        config: FinetuneConfig,
        axes: Mapping[str, int],
    ) -> None:
        self._axes, self._names = axes, features_of(teacher.network, axes)
        if not self._names:
            raise TrainingError(
                "finetune.stages: no block of the network is recognised, so that there are no features to learn; leave "
                "stages out"
            )
        shown = replace(teacher, network=featured(teacher.network, self._names))
        super().__init__(module, shown, strategy, config, self._apart)

    def _apart(self, ours: Features, labels: torch.Tensor, wanted: Features, config: FinetuneConfig) -> torch.Tensor:
        """Mean of the distances of all features that the SubNet has."""
        return torch.stack(
            [feature_loss(each, wanted[name], self._axes.get(name)) for name, each in ours.items()]
        ).mean()

    @torch.no_grad()
    def _by_teacher(self, images: torch.Tensor, side: int) -> Any:
        return dict(zip(self._names, super()._by_teacher(images, side)[1:], strict=True))

    def _logits(self, module: ElasticModule, subnet: SubNet, images: torch.Tensor) -> Any:
        """The features that a SubNet has, by name."""
        names = features_of(module.activate(subnet), self._axes)
        found = forward(featured(module, names), sized(images, resolution_of(subnet)), self._config.precision)
        return dict(zip(names, found[1:], strict=True))
