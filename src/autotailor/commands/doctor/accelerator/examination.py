"""``doctor --accelerator``: runs the checks one after another; each tells its own error, and the next one follows."""

import copy
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import nn

from autotailor.accuracy.determinism import deterministic
from autotailor.artifacts import write_json
from autotailor.commands.doctor.accelerator import evaluating, training
from autotailor.commands.doctor.accelerator.lab import FULL, TINY, Lab, lab
from autotailor.commands.doctor.accelerator.training import FitnessError, Numbers, sharing, step_on
from autotailor.commands.doctor.finding import Finding, Verdict, print_findings
from autotailor.compute.placement import free_memory, place
from autotailor.finetuning.pretraining import learning
from autotailor.finetuning.training.micro_batches import MicroBatches
from autotailor.finetuning.training.steps import StepFunction
from autotailor.ir.errors import AutoTailorError
from autotailor.task.registry import of


def speed(lab: Lab) -> Numbers:
    """Gradients of whole batches, without optimizer and without reading pictures."""
    rates: Numbers = {}
    for precision in ("fp32", "bf16", *(["fp16"] if lab.device.type == "cuda" else [])):
        plain = place(copy.deepcopy(lab.network), lab.device).train()
        rates[f"plain_{precision}"] = _rate(lab, plain, learning(plain, of(lab.data), precision, 0.1))
        rates[f"supernet_{precision}"] = _rate(lab, *sharing(lab, lab.device, precision))
    return rates


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


CHECKS: Mapping[str, Callable[[Lab], training.Numbers | None]] = {
    "hardware": evaluating.hardware,
    "step": training.compared_step,
    "calibration": evaluating.calibration,
    "memory": training.memory,
    "speed": speed,
    "sensitivity": evaluating.single_modifications,
    "moments": evaluating.moments,
    "finetune": training.finetune,
    "polish": training.polish,
    "resumption": training.resumption,
    "tests": evaluating.tests,
}


@dataclass(frozen=True)
class Part:
    """The outcome of one check.

    Attributes:
        name: of CHECKS.
        verdict: how it ended; UNAVAILABLE where it could not be made here.
        seconds: that it took.
        numbers: what it found.
        error: what went wrong, in one line.
        trace: where, for a report; empty for errors that say it themselves.
    """

    name: str
    verdict: Verdict
    seconds: float = 0.0
    numbers: Mapping[str, float | int | str | None] = field(default_factory=dict)
    error: str = ""
    trace: str = ""

    def finding(self) -> Finding:
        """As a line of the doctor's table."""
        shown = [
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in self.numbers.items()
        ]
        said = self.error or ", ".join(shown) or "not here"
        return Finding(self.name, self.verdict, f"{said} ({self.seconds:.1f} s)")

    def to_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return {**vars(self), "verdict": self.verdict.value, "numbers": dict(self.numbers)}


def examine(lab: Lab, checks: Mapping[str, Callable[[Lab], training.Numbers | None]] = CHECKS) -> Iterator[Part]:
    """Makes all checks; those that would begin behind ``lab.effort.minutes`` are left out, and count as failed."""
    begin = time.monotonic()
    for name, check in checks.items():
        if time.monotonic() - begin > 60 * lab.effort.minutes:
            yield Part(name, Verdict.FAILED, error=f"left out: the {lab.effort.minutes:g} minutes were over")
            continue
        yield _one(lab, name, check)
        free_memory(lab.device)


def _one(lab: Lab, name: str, check: Callable[[Lab], training.Numbers | None]) -> Part:
    begin = time.monotonic()
    try:
        numbers = check(lab)
    except Exception as error:  # whatever an accelerator raises, the next check is made
        trace = "" if isinstance(error, AutoTailorError) else traceback.format_exc()
        said = str(error) if isinstance(error, AutoTailorError) else f"{type(error).__name__}: {error}"
        return Part(name, Verdict.FAILED, time.monotonic() - begin, {}, " ".join(said.split()), trace)
    verdict = Verdict.UNAVAILABLE if numbers is None else Verdict.GOOD
    return Part(name, verdict, time.monotonic() - begin, numbers or {})


def check(accelerator: str, output: Path, *, tiny: bool = False) -> None:
    """Examines an accelerator, prints a table and writes it as JSON.

    Args:
        accelerator: its name, see ``autotailor.compute.accelerator``.
        output: of the JSON file.
        tiny: with a small network and few pictures, in seconds.

    Raises:
        AcceleratorError: the name is unknown, or this machine does not have the accelerator.
        FitnessError: a check failed.
    """
    parts: list[Part] = []
    with tempfile.TemporaryDirectory(prefix="autotailor-doctor-") as folder:
        examined = lab(TINY if tiny else FULL, accelerator, Path(folder))

        def findings() -> Iterator[Finding]:
            for part in examine(examined):
                parts.append(part)
                yield part.finding()

        print_findings(str(examined.device), findings())
    device, checks = str(examined.device), [part.to_dict() for part in parts]
    write_json(output, {"accelerator": device, "network": examined.effort.network, "checks": checks})
    if failed := [part.name for part in parts if part.verdict is Verdict.FAILED]:
        raise FitnessError(f"accelerator {device} failed: {', '.join(failed)}; {output} has the details to report")
