"""Images per second of steps of training, of the plain network and of its SuperNet, by precision."""

from __future__ import annotations

import copy
import time
from dataclasses import replace

import torch
from torch import nn

from autotailor.accuracy.determinism import deterministic
from autotailor.commands.doctor.accelerator.lab import Lab
from autotailor.commands.doctor.accelerator.training import Numbers, sharing, step_on
from autotailor.compute.placement import place
from autotailor.finetuning.pretraining import learning
from autotailor.finetuning.training.micro_batches import MicroBatches
from autotailor.finetuning.training.steps import StepFunction
from autotailor.task.registry import of


def speed(lab: Lab) -> Numbers:
    """Gradients of whole batches, without optimizer and without reading pictures."""
    found: Numbers = {}
    for precision in ("fp32", "bf16", *(["fp16"] if lab.device.type == "cuda" else [])):
        plain = place(copy.deepcopy(lab.network), lab.device).train()
        found[f"plain_{precision}"] = _rate(lab, plain, learning(plain, of(lab.data), precision, 0.1))
        found[f"supernet_{precision}"] = _rate(lab, *sharing(lab, lab.device, precision))
    return found


def _rate(lab: Lab, module: nn.Module, step: StepFunction) -> float:
    """Images per second, after one step that is not timed."""
    passes, batch = MicroBatches(module, step, 0, "the check of speed"), step_on(lab, lab.device)
    with deterministic(torch.get_num_threads(), lab.device):
        passes.gradients(replace(batch), 0)
        begin = time.perf_counter()
        for number in range(lab.effort.steps):
            passes.gradients(batch, number)  # reads the loss, and so waits for the accelerator
        if lab.device.type == "cuda":
            torch.cuda.synchronize(lab.device)
        return lab.effort.steps * len(batch.images) / (time.perf_counter() - begin)
