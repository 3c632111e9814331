"""Rule finetune: weight-shared training of a SuperNet, with the original network as teacher."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

import torch

from autotailor.accuracy.calibration import Calibrator, resolution_of
from autotailor.accuracy.determinism import deterministic
from autotailor.accuracy.evaluation import evaluate, percent
from autotailor.accuracy.fingerprint import fingerprint
from autotailor.compute.accelerator import resolve
from autotailor.compute.compilation import check_compiler, compiled
from autotailor.compute.placement import device_of, place
from autotailor.compute.turns import InTurn, executor
from autotailor.data.augmentation.mixing import mixing
from autotailor.data.augmentation.stream import augmented
from autotailor.data.splits import DataSplits, TrainStream, sized
from autotailor.finetuning import sampling
from autotailor.finetuning.config import LARGEST, FinetuneConfig
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.external_teacher import Teacher, load_teacher
from autotailor.finetuning.forgetting import warn_if_worse
from autotailor.finetuning.layer_decay import learning_rate_scales
from autotailor.finetuning.lesson import teacher_alone
from autotailor.finetuning.loss import Loss, make_loss
from autotailor.finetuning.panel import watch_subnets
from autotailor.finetuning.pretraining import check_network, training_metrics
from autotailor.finetuning.sampling.strategy import Strategy, stages_of
from autotailor.finetuning.teacher import question
from autotailor.finetuning.training.loop import train
from autotailor.finetuning.training.precision import forward
from autotailor.finetuning.training.processes.group import join
from autotailor.finetuning.training.states.contents import Row
from autotailor.finetuning.training.steps import Step
from autotailor.finetuning.training.watch import Record, Watch, behind, no_record
from autotailor.ir.dimensions.dimension import RESOLUTION
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.execution.modules.slices import SliceGradient
from autotailor.ir.junctions import selected
from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import SubNet, largest, smallest
from autotailor.ir.space.variable import shown
from autotailor.ir.supernet import SuperNet
from autotailor.task.registry import of, score_of

Gradients = tuple[SliceGradient, ...]


@dataclass(frozen=True)
class FinetuneResult:
    """A trained SuperNet.

    Attributes:
        net: with the trained weights and the largest SubNet's recalibrated statistics; untrained, with those given.
        metrics: ``validation_accuracy`` (percent), with ``original_``, ``largest_`` and ``smallest_`` before it;
            ``loss`` of the last epoch (unless there was none), ``images`` seen.
        history: one row for each epoch, with the accuracies of the epochs after which the panel was measured.
    """

    net: SuperNet
    metrics: dict[str, float]
    history: list[Row]


@dataclass(frozen=True)
class Begun:
    """A SuperNet that has learnt on other pictures before those of the task (``backbone``).

    Attributes:
        net: with sorted channels, and BatchNorm that is calibrated anew.
        history: one row for each epoch.
        images: that the training has seen.
    """

    net: SuperNet
    history: list[Row]
    images: int


def finetune(
    net: SuperNet,
    data: DataSplits,
    config: FinetuneConfig,
    workdir: Path,
    record: Record = no_record,
    begun: Begun | None = None,
) -> FinetuneResult:
    """Trains the shared weights of a SuperNet; continues from ``workdir/finetune.ckpt`` if that is of this training.

    Without epochs nothing is trained: channels are sorted, and the largest SubNet stays the original network, with the
    statistics of BatchNorm that it came with.

    Args:
        net: the SuperNet; it is not changed. Its largest SubNet, before training, is the teacher.
        data: the splits; data without labels need the original network's answers (``accuracy.with_labels``).
        config: of the training.
        workdir: folder of the checkpoint; made if missing.
        record: takes the metrics of each epoch as soon as the epoch ends.
        begun: what the stages before have left of the SuperNet, with which the training begins.

    Raises:
        TrainingError: the SuperNet does not fit the data, its original network cannot classify the data, the strategy
            is unknown, or the loss is no longer a finite number.
    """
    config = teacher_alone(config, data)
    join(config)
    stages = stages_of(net.space, net.stages)
    strategy = sampling.create(config.strategy, net.space, stages, config.subnets, config.sampling, net.macs)
    device = resolve(config.accelerator)
    if config.compile:
        check_compiler(device, "finetune.compile")
    original = Teacher.largest_of(net, device, logits=of(data).logits)
    check_network(original.network, data, original.resolution)
    with deterministic(config.threads, device):
        answered = question(original.network, data, original.resolution, config.accept_chance)
        teaching = teacher_of(original, data, config, device)
    calibrator = Calibrator(data, config.calibration)
    is_trained, before = bool(config.epochs or begun), begun or Begun(net, [], 0)
    net = begun.net if begun else calibrator.adopt(net, device)
    if config.sort and not begun and net.elastic.moments is None:  # moments have sorted the channels before
        net = net.sort_channels()
    if config.epochs and not config.freeze:  # given statistics are not those of trained weights
        net = net.recalibrated(1.0)
    module = net.module(logits=of(data).logits).to(device)
    if config.epochs and config.freeze:
        freeze(module)
    others = [teaching.network.state_dict()] if config.teacher not in (None, LARGEST) else []
    history, statistics, earlier = list[Row](), None, len(before.history)
    if config.epochs:
        watch = watch_subnets(module, data, config, answered, behind(record, earlier))
        stream = augmented(data, config.augmentation, config.seed)
        path = Path(workdir) / "finetune.ckpt"
        history = train_shared(net, module, data, stream, config, teaching, strategy, watch, path, others)
    if is_trained and not config.freeze:
        with deterministic(config.threads, device):
            statistics = calibrator.statistics(module.eval(), net.largest())
    is_given = not is_trained or bool(config.freeze)
    metrics = _metrics(module, data, calibrator, config, answered, is_given, net.largest(), net.smallest())
    metrics["original_validation_accuracy"] = percent(answered)
    metrics |= training_metrics(history, data, config.batch_size)
    metrics["images"] += before.images
    history = [*before.history, *({**row, "epoch": row["epoch"] + earlier} for row in history)]
    return FinetuneResult(net.absorb(module, statistics), metrics, history)


def train_shared(
    net: SuperNet,
    module: ElasticModule,
    data: DataSplits,
    stream: TrainStream,
    config: FinetuneConfig,
    teacher: Teacher,
    strategy: Strategy,
    watch: Watch,
    path: Path,
    others: Sequence[Mapping[str, torch.Tensor]] = (),
) -> list[Row]:
    """Trains the shared weights of a module, in place; continues from a checkpoint if that is of this training.

    Args:
        net: the SuperNet.
        module: of the SuperNet, on the device that trains.
        data: the splits.
        stream: their training images.
        config: of the training.
        teacher: of the SubNets that do not learn from the largest one.
        strategy: draws the SubNets of each step.
        watch: what is measured meanwhile.
        path: of the checkpoint, named after the rule.
        others: weights of other networks that the result depends on.

    Raises:
        TrainingError: the loss is no longer a finite number, or the user's loss cannot be used.
    """
    words = [path.stem, config.identity, data.fingerprint, repr(net.space), *strategy.identity]
    identity = fingerprint(words, module.state_dict(), *others)
    loss = make_loss(config, of(data), data.num_classes, net.head.independent, data.labelled)
    step = WeightSharing(module, teacher, strategy, config, loss, of(data).at_side)
    scales = learning_rate_scales(net, module, config.layer_decay)
    mix = mixing(data, config.augmentation, config.seed)
    return train(module, stream, config, step, path, identity, path.stem, watch, config.resume_from, scales, mix)


def freeze(module: ElasticModule) -> None:
    """Leaves the weights that only alternatives of blocks read to be trained (AdaptiveNet, section 4.2).

    Raises:
        TrainingError: the space has no alternatives.
    """
    graph = module.elastic.graph
    if not (own := graph.weights.keys() - selected(graph).weights.keys()):
        raise TrainingError(
            f"finetune.freeze: network {graph.name} has no alternatives of blocks, so that nothing is left to train; "
            "ask for some with model.space.alternatives, or leave freeze out"
        )
    module.train_only(own)


def teacher_of(original: Teacher, data: DataSplits, config: FinetuneConfig, device: torch.device) -> Teacher:
    """The original network, or the one that the configuration names, after the same check of its accuracy."""
    if config.teacher is None or config.teacher == LARGEST:
        return original
    teacher = load_teacher(config.teacher, data, device)
    question(teacher.network, data, teacher.resolution, config.accept_chance, teacher.name)
    return teacher


class WeightSharing:
    """One step of training: averages the gradients of all SubNets that the strategy draws.

    On the processor SubNets run side by side in ``config.workers`` threads, each on its own view of the parameters. On
    an accelerator they run in turn, and so they do where several processes train together, because these exchange the
    statistics of BatchNorm in the order of the layers. Gradients are added in the order of the draw, so that the result
    does not depend on the number of workers.

    Args:
        module: the SuperNet, on the device that trains.
        teacher: of the SubNets that do not learn from the largest one.
        strategy: draws the SubNets of each step.
        config: of the training.
        loss: of each SubNet.
        at_side: see ``Task``.
    """

    def __init__(
        self,
        module: ElasticModule,
        teacher: Teacher,
        strategy: Strategy,
        config: FinetuneConfig,
        loss: Loss,
        at_side: bool = False,
    ) -> None:
        self._strategy, self._config, self._loss, self._at_side = strategy, config, loss, at_side
        network = place(teacher.network, device_of(module))
        self._teacher = replace(teacher, network=compiled(network) if config.compile else network)
        self._largest = largest(strategy.space)
        self._ends = {_shape(smallest(strategy.space)): "smallest", _shape(self._largest): "largest"}
        self._module = module
        self._views = [module.replica() for _ in range(strategy.count)]
        self._teaching = module.replica() if config.teacher == LARGEST else None
        self._one_side = Lock()  # of images at a time is seen by the view that teaches
        self._last: list[tuple[SubNet, float]] = []
        self._pool = InTurn() if config.world > 1 else executor(config.workers, device_of(module), "subnet")

    def __call__(self, batch: Step) -> float:
        """Adds gradients; returns the mean loss over the SubNets."""
        subnets = self._strategy.step(batch.progress, batch.random)
        for view in self._views:
            view.look_at(self._module)
        teaching = self._strategy.in_place and subnets[0] == self._largest and not self._at_side
        first: Future[Any] = Future()  # outputs of the largest SubNet, where it teaches the others
        lessons = self._lessons(subnets, batch.images)

        def run(position: int) -> tuple[torch.Tensor, Gradients]:
            with self._views[position].train(not self._config.freeze).slices() as slices:
                try:
                    logits = self._logits(self._views[position], subnets[position], batch.images)
                except BaseException as error:
                    if position == 0:
                        first.set_exception(error)
                    raise
                if position == 0:
                    first.set_result(_detached(logits))
                targets = first.result() if teaching and position else lessons[subnets[position]].result()
                loss = self._loss(logits, batch.labels, targets, self._config)
                return loss.detach(), slices.gradients(loss * batch.loss_scale / len(subnets))

        running = [self._pool.submit(run, position) for position in range(len(subnets))]
        wait(running)  # where one fails, no other goes on behind the step's end
        results = [future.result() for future in running]
        self._last = [(subnet, loss.item()) for subnet, (loss, _) in zip(subnets, results, strict=True)]
        for _, gradients in results:
            self._module.add_gradients(gradients)
        return sum(loss for _, loss in self._last) / len(self._last)

    def describe(self) -> str:
        """The SubNets of the last step with their losses."""
        return "it trained " + " and ".join(f"{_named(subnet)} with loss {loss:.4g}" for subnet, loss in self._last)

    def kind(self) -> tuple[str, ...]:
        """Which SubNets of the last step are the largest or the smallest, whatever the resolution of the step."""
        return tuple(sorted(self._ends.get(_shape(subnet), "between") for subnet, _ in self._last))

    def _lessons(self, subnets: Sequence[SubNet], images: torch.Tensor) -> dict[SubNet, Future[Any]]:
        """The outputs that each SubNet learns from; they are computed beside the first SubNet."""
        asked = {subnet: self._who_teaches(subnet) for subnet in subnets}
        answers = {
            (teach, side): self._pool.submit(teach, images, side) for teach, side in dict.fromkeys(asked.values())
        }
        return {subnet: answers[question] for subnet, question in asked.items()}

    def _who_teaches(self, subnet: SubNet) -> tuple[Callable[[torch.Tensor, int], Any], int]:
        """What asks the teacher of a SubNet, and the side of the images that it is asked about; 0 leaves their size."""
        side = resolution_of(subnet)
        if self._teaching is None or subnet == self._largest:
            return self._by_teacher, self._teacher.sees(side, self._at_side)
        return self._by_largest, side if self._at_side else resolution_of(self._largest)

    @torch.no_grad()
    def _by_largest(self, images: torch.Tensor, side: int) -> Any:
        """The outputs of the largest SubNet as it is now, with the statistics of these images, as in its training."""
        assert self._teaching is not None
        with self._one_side:
            self._teaching.look_at(self._module)
            self._teaching.train().activate(self._largest)
            return forward(self._teaching, sized(images, side), self._config.precision)

    @torch.no_grad()
    def _by_teacher(self, images: torch.Tensor, side: int) -> Any:
        """The teacher's outputs."""
        return forward(self._teacher.network, sized(images, side), self._config.precision)

    def _logits(self, module: ElasticModule, subnet: SubNet, images: torch.Tensor) -> Any:
        module.activate(subnet)
        return forward(module, sized(images, resolution_of(subnet)), self._config.precision)


def _detached(outputs: Any) -> Any:
    """What a network returns, or tensors by their names, without gradients."""
    if isinstance(outputs, dict):
        return {name: each.detach() for name, each in outputs.items()}
    return tuple(each.detach() for each in outputs) if isinstance(outputs, tuple) else outputs.detach()


def _shape(subnet: SubNet) -> tuple[int, ...]:
    """The choices of a SubNet without that of the resolution."""
    return tuple(
        index for variable, index in zip(subnet.space, subnet.indices, strict=True) if variable.name != RESOLUTION
    )


def _named(subnet: SubNet) -> str:
    """A SubNet by its id and by the choices that differ from the largest SubNet."""
    choices = ", ".join(f"{change.variable}={shown(change.choice)}" for change in subnet.modifications)
    return f"SubNet {subnet.id} ({choices or 'the largest'})"


def _metrics(
    module: ElasticModule,
    data: DataSplits,
    calibrator: Calibrator,
    config: FinetuneConfig,
    answered: FloatArray,
    is_given: bool,
    *ends: SubNet,
) -> dict[str, float]:
    """Accuracies of the largest and the smallest SubNet; warns where the largest is below the original network."""
    metrics = {}
    with deterministic(config.threads, device_of(module)):
        for name, subnet in zip(("largest", "smallest"), ends, strict=True):
            stays = name == "largest" and is_given
            statistics = None if stays else calibrator.statistics(module.eval(), subnet)
            values = evaluate(module, subnet, data.validation, statistics).values
            metrics[f"{name}_validation_accuracy"] = percent(values)
            if name == "largest":
                warn_if_worse(answered, values, data.validation.groups, config.lr, score_of(data))
    return metrics
