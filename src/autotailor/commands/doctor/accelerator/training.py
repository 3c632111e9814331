"""Checks of training: one step beside the processor, fine-tuning, polishing, memory, and resumption after a kill."""

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import autotailor
from autotailor import finetuning, sensitivity
from autotailor.accuracy.determinism import deterministic
from autotailor.commands.doctor.accelerator.lab import Lab
from autotailor.compute.placement import CPU, free_memory, place, put, put_images
from autotailor.finetuning import polishing, sampling
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.loss import make_loss
from autotailor.finetuning.sampling.strategy import stages_of
from autotailor.finetuning.training.micro_batches import MicroBatches
from autotailor.finetuning.training.steps import Step
from autotailor.finetuning.weight_sharing import WeightSharing
from autotailor.ir.errors import AutoTailorError
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.task.registry import of

Numbers = dict[str, float | int | str | None]
LOSS, GRADIENT = 1e-3, 1e-2
"""Largest relative differences from the processor, of the loss and of all gradients in root mean square: kernels add
in other orders, and where a rounding moves a value across 0, the gradient of a ReLU changes as a whole."""
WAIT = 240.0
"""Seconds for which the first checkpoint of another process is awaited."""


class FitnessError(AutoTailorError):
    """An accelerator computes something else than it should."""


def sharing(lab: Lab, device: torch.device, precision: str) -> tuple[ElasticModule, WeightSharing]:
    """The module of the SuperNet on a device, and the step of fine-tuning."""
    net, config = lab.net, replace(lab.finetune, precision=precision)
    module = place(net.module(logits=True), device).train()
    stages = stages_of(net.space, net.stages)
    strategy = sampling.create(config.strategy, net.space, stages, config.subnets, config.sampling, net.macs)
    loss = make_loss(config, of(lab.data), lab.data.num_classes, net.head.independent, lab.data.labelled)
    return module, WeightSharing(module, Teacher.largest_of(net, device), strategy, config, loss)


def step_on(lab: Lab, device: torch.device) -> Step:
    """One step of training with the first pictures, the same on every device."""
    images, labels = lab.batch
    return Step(put_images(images, device), put(labels, device), 0.5, np.random.default_rng(0))


def compared_step(lab: Lab) -> Numbers:
    """One step of training: its loss and its gradients beside those of the processor.

    Raises:
        FitnessError: they differ by more than ``LOSS`` or ``GRADIENT``.
    """
    losses, gradients = [], []
    for device in (CPU, lab.device):
        module, step = sharing(lab, device, "fp32")
        with deterministic(torch.get_num_threads(), device):
            losses.append(step(step_on(lab, device)))
        module.partial_gradients.hand_over()
        flat = [parameter.grad.flatten().cpu() for parameter in module.parameters() if parameter.grad is not None]
        gradients.append(torch.cat(flat).double())
    loss = abs(losses[1] - losses[0]) / abs(losses[0])
    gradient = float((gradients[1] - gradients[0]).norm() / gradients[0].norm())
    if not loss <= LOSS or not gradient <= GRADIENT:
        raise FitnessError(
            f"a step of training on {lab.device} has loss {losses[1]:.6g} and gradients that differ by {gradient:.2g}, "
            f"and the processor has loss {losses[0]:.6g}; expected at most {LOSS:g} and {GRADIENT:g}: report this GPU "
            f"with its driver, and train with accelerator=cpu meanwhile"
        )
    return {"loss": losses[1], "loss_difference": loss, "gradient_difference": gradient}


def finetune(lab: Lab) -> Numbers:
    """The rule finetune on a small scale."""
    rates: list[float] = []
    result = finetuning.finetune(
        lab.net,
        lab.data,
        lab.finetune,
        lab.folder / "finetune",
        lambda metrics, _: rates.append(metrics.get("images_per_second", 0.0)),
    )
    return {
        "loss_first": result.history[0]["loss"],
        "loss_last": result.history[-1]["loss"],
        "images_per_second": max(rates, default=0.0) or None,
        "validation_accuracy": result.metrics["largest_validation_accuracy"],
    }


def polish(lab: Lab) -> Numbers:
    """The rule polish for two SubNets, as for weights that arrive trained."""
    subnets = [lab.net.smallest(), lab.net.sample(np.random.default_rng(1))]
    journal = lab.folder / "polish.jsonl"
    accuracies = sensitivity.measure_accuracies(lab.net, lab.data, subnets, lab.sensitivity, journal)
    inherited = {id_: each.accuracy for id_, each in accuracies.items()}
    contests = {"budget_01": subnets}
    _, table = polishing.polish(lab.net, lab.net, lab.data, contests, inherited, lab.polish, lab.folder / "polish")
    last = table.iloc[-1]
    return {
        "subnets": len(table),
        "accuracy_before": float(last["accuracy_before"]),
        "accuracy_after": float(last["accuracy_validation"]),
    }


def memory(lab: Lab) -> Numbers:
    """A step whose batch does not fit into memory is repeated with half of the images.

    On CUDA this process may use no more memory than some of what the step needs. Elsewhere a step refuses images.

    Raises:
        FitnessError: the step was not divided.
    """
    module, step = sharing(lab, lab.device, "fp32")
    whole, batch = MicroBatches(module, step, 0, "the check of memory"), step_on(lab, lab.device)
    if lab.device.type != "cuda":
        halved = MicroBatches(module, _Refusing(step, len(batch.images) // 2), 0, "the check of memory")
        halved.gradients(batch, 0)
        limit = None
    else:
        free_memory(lab.device)
        torch.cuda.reset_peak_memory_stats(lab.device)
        before = torch.cuda.memory_allocated(lab.device)
        whole.gradients(batch, 0)
        peak, total = torch.cuda.max_memory_allocated(lab.device), torch.cuda.mem_get_info(lab.device)[1]
        limit = before + 0.7 * (peak - before)
        module.zero_grad(set_to_none=True)
        free_memory(lab.device)
        torch.cuda.set_per_process_memory_fraction(limit / total, lab.device)
        try:
            halved = MicroBatches(module, step, 0, "the check of memory")
            halved.gradients(batch, 0)
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0, lab.device)
    if not 0 < halved.size < len(batch.images):
        raise FitnessError(
            f"a step of {len(batch.images)} images was not divided on {lab.device} although memory was too small for "
            f"it; set finetune.micro_batch by hand"
        )
    return {"images": len(batch.images), "divided_into": halved.size, "limit_mb": limit and limit / 2**20}


class _Refusing:
    """A step that has no memory for more than some images."""

    def __init__(self, step: Callable[[Step], float], most: int) -> None:
        self._step, self._most = step, most

    def __call__(self, batch: Step) -> float:
        if len(batch.images) > self._most:
            raise torch.OutOfMemoryError("out of memory, played")
        return self._step(batch)


def resumption(lab: Lab) -> Numbers:
    """A training that is killed by SIGKILL and goes on ends with the weights of one that was not.

    Raises:
        FitnessError: the other process was not killed in the middle, or the weights differ.
    """
    config = replace(lab.finetune, epochs=max(2, lab.effort.epochs), checkpoint_seconds=0.0)
    saved, killed = lab.folder / "supernet.pt", lab.folder / "killed"
    lab.net.save(saved)
    bare = Lab(lab.effort, lab.device, lab.folder)  # without what has been opened here
    process = multiprocessing.get_context("spawn").Process(target=_train, args=(bare, config, saved, killed))
    process.start()
    before = _kill_after_checkpoint(process, killed / "finetune.ckpt")
    resumed = _train(lab, config, saved, killed)
    after = torch.load(killed / "finetune.ckpt", map_location="cpu", weights_only=True)
    if before["fingerprint"] != after["fingerprint"]:
        raise FitnessError(
            f"a training on {lab.device} that was killed began anew; its checkpoint was not taken for its own"
        )
    whole = _train(lab, config, saved, lab.folder / "whole")
    worst = float(np.max([np.abs(whole[name] - resumed[name]).max() for name in whole]))
    if not worst <= LOSS:  # nor NaN
        raise FitnessError(
            f"a training on {lab.device} that was killed and went on ends with weights that differ by "
            f"{worst:.2g} from one that was not; trainings there are not repeatable"
        )
    at = before["state"]["position"]
    return {"epoch": at["epoch"], "step": at["batch"], "difference": worst, "bit_equal": "no" if worst else "yes"}


def _train(
    lab: Lab, config: finetuning.FinetuneConfig, saved: Path, folder: Path
) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    """The weights after fine-tuning; run in another process, too."""
    return dict(finetuning.finetune(autotailor.load(saved), lab.data, config, folder).net.graph.weights)


def _kill_after_checkpoint(process: multiprocessing.process.BaseProcess, path: Path) -> dict[str, Any]:
    """Kills a process as soon as it has written a checkpoint; returns the checkpoint."""
    end = time.monotonic() + WAIT
    while process.is_alive() and not path.exists() and time.monotonic() < end:
        time.sleep(0.02)
    was_alive = process.is_alive()
    process.kill()
    process.join()
    if not was_alive or not path.exists():
        raise FitnessError("the training of another process wrote no checkpoint before it ended; see its messages")
    return torch.load(path, map_location="cpu", weights_only=True)  # type: ignore[no-any-return]
