"""Rule pretrain: trains the original network from scratch, where no trained weights are available."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from autotailor.accuracy.determinism import deterministic
from autotailor.accuracy.evaluation import correctness, percent
from autotailor.accuracy.fingerprint import fingerprint
from autotailor.compute.placement import CPU, device_of
from autotailor.data.augmentation.mixing import mixing
from autotailor.data.augmentation.stream import augmented
from autotailor.data.splits import DataSplits
from autotailor.finetuning.config import PretrainConfig
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.panel import watch_network
from autotailor.finetuning.training.loop import train
from autotailor.finetuning.training.precision import forward
from autotailor.finetuning.training.processes.group import join
from autotailor.finetuning.training.states.contents import Row
from autotailor.finetuning.training.steps import Step, StepFunction
from autotailor.finetuning.training.watch import Record, no_record
from autotailor.project.factory import raised
from autotailor.task.interface import Lesson, Task
from autotailor.task.registry import of
from autotailor.task.rows import wrong_shape

StateDict = dict[str, torch.Tensor]


@dataclass(frozen=True)
class PretrainResult:
    """A trained network.

    Attributes:
        state_dict: weights, contiguous.
        metrics: ``validation_accuracy`` (percent), ``loss`` of the last epoch (unless there was none), ``images`` seen.
        history: one row for each epoch.
    """

    state_dict: StateDict
    metrics: dict[str, float]
    history: list[Row]


def pretrain(
    network: nn.Module, data: DataSplits, config: PretrainConfig, workdir: Path, record: Record = no_record
) -> PretrainResult:
    """Trains a network with labels, in place; continues from ``workdir/pretrain.ckpt`` if that is of this training.

    Args:
        network: images ``[n, 3, R, R]`` to logits ``[n, classes]``, with initial weights; it is on the processor
            afterwards.
        data: the splits.
        config: of the training.
        workdir: folder of the checkpoint; made if missing.
        record: takes the metrics of each epoch as soon as the epoch ends.

    Raises:
        TrainingError: the network does not fit the data, or training cannot go on.
    """
    join(config)
    check_network(network, data)
    if not data.labelled:
        raise TrainingError(
            f"data {data.name} has no labels, and training from scratch needs them; give the trained network "
            f"(model.weights, or an .onnx file as model.source)"
        )
    _check_training_mode(network, data)

    step = learning(network, of(data), config.precision, config.label_smoothing)
    identity = fingerprint(["pretrain", config.identity, data.fingerprint], network.state_dict())
    path, watch = Path(workdir) / "pretrain.ckpt", watch_network(data, config, record)
    stream = augmented(data, config.augmentation, config.seed)
    mix = mixing(data, config.augmentation, config.seed)
    history = train(network, stream, config, step, path, identity, "pretrain", watch, config.resume_from, mix=mix)
    with deterministic(config.threads, device_of(network)):  # test pictures are left for the measurements
        metrics = {"validation_accuracy": percent(correctness(network, data.validation))}
    metrics |= training_metrics(history, data, config.batch_size)
    return PretrainResult(weights_of(network), metrics, history)


def learning(network: nn.Module, task: Task, precision: str, label_smoothing: float) -> StepFunction:
    """The step of a network that learns from labels alone."""
    lesson = Lesson(smoothing=label_smoothing)

    def step(batch: Step) -> float:
        loss = task.loss(forward(network, batch.images, precision), batch.labels, None, lesson)
        (loss * batch.loss_scale).backward()  # type: ignore[no-untyped-call]
        return loss.item()

    return step


def weights_of(network: nn.Module) -> StateDict:
    """Copies of a network's weights, contiguous; the network is moved to the processor."""
    return {name: tensor.detach().clone().contiguous() for name, tensor in network.to(CPU).state_dict().items()}


def accuracies(network: nn.Module, data: DataSplits, threads: int, resolution: int = 0) -> dict[str, float]:
    """``validation_accuracy`` and ``test_accuracy`` of a network, percent, computed where the network is."""
    with deterministic(threads, device_of(network)):
        return {
            "validation_accuracy": percent(correctness(network, data.validation, resolution)),
            "test_accuracy": percent(correctness(network, data.test, resolution)),
        }


def training_metrics(history: list[Row], data: DataSplits, batch_size: int) -> dict[str, float]:
    """``loss`` of the last epoch, where there was one, and the number of ``images`` seen in all epochs."""
    per_epoch = data.train.num_batches(batch_size) * min(batch_size, len(data.train))
    last = {"loss": history[-1]["loss"]} if history else {}
    return last | {"images": float(per_epoch * len(history))}


def check_network(network: nn.Module, data: DataSplits, resolution: int = 0) -> None:
    """Raises TrainingError unless the network turns the data's images into outputs of their task."""
    check_outputs(network, of(data), data.num_classes, data.image(resolution), f"data {data.name}")


@torch.no_grad()
def _check_training_mode(network: nn.Module, data: DataSplits) -> None:
    """Raises TrainingError where a network returns more than logits while it trains, as one with auxiliary heads does.

    A copy is asked, which leaves the network's statistics and the generators of random numbers as they are.
    """
    device = device_of(network)
    with torch.random.fork_rng():
        outputs = copy.deepcopy(network).train()(torch.zeros(2, *data.image(), device=device))
    if not isinstance(outputs, torch.Tensor):
        raise TrainingError(
            f"{type(network).__name__} returns a {type(outputs).__name__} while it trains; expected one tensor of "
            f"logits [n, {data.num_classes}]: turn auxiliary heads off in its factory (aux_logits=False in torchvision)"
        )


@torch.no_grad()
def check_outputs(network: nn.Module, task: Task, classes: int, image: Sequence[int], images: str) -> None:
    """Raises TrainingError unless a network turns images of some shape into outputs of a task (``Task.misfit``).

    Args:
        network: of any kind.
        task: of the data.
        classes: number of classes.
        image: channels, height and width of the images.
        images: whose they are, for messages.
    """
    if not isinstance(network, nn.Module):
        raise TrainingError(f"expected a torch.nn.Module, not {type(network).__name__}")
    was_training = network.training
    try:
        outputs = network.eval()(torch.zeros(2, *image, device=device_of(network)))
    except Exception as error:  # a network of the user's may raise anything
        shape = ", ".join(map(str, ("n", *image)))
        raise TrainingError(
            f"{type(network).__name__} cannot read images [{shape}] of {images}: {raised(error)}"
        ) from error
    finally:
        network.train(was_training)
    if not isinstance(outputs, torch.Tensor | tuple):
        raise TrainingError(f"{type(network).__name__} {wrong_shape(outputs, classes, images)}")
    if misfit := task.misfit(task.read(outputs, image[-1]), classes, images):
        raise TrainingError(f"{type(network).__name__} {misfit}")
