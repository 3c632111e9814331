"""Checks of what is computed without gradients: recalibration, moments, and single modifications; and the tests."""

import subprocess
import sys
import tempfile

import torch

from autotailor import accuracy, sensitivity
from autotailor.accuracy.calibration import Calibrator
from autotailor.accuracy.determinism import deterministic
from autotailor.accuracy.moments import prepare
from autotailor.commands.doctor.accelerator.lab import Lab
from autotailor.commands.doctor.accelerator.training import LOSS, FitnessError, Numbers
from autotailor.compute.placement import CPU
from autotailor.project import places

MARK = "mark.cuda"


def hardware(lab: Lab) -> Numbers:
    """What the accelerator is."""
    numbers: Numbers = {"torch": torch.__version__, "accelerator": str(lab.device)}
    if lab.device.type == "cuda":
        properties = torch.cuda.get_device_properties(lab.device)
        numbers |= {
            "name": properties.name,
            "memory_gib": properties.total_memory / 2**30,
            "capability": ".".join(map(str, torch.cuda.get_device_capability(lab.device))),
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call]
            "bf16": "yes" if torch.cuda.is_bf16_supported(including_emulation=False) else "no",
        }
    return numbers


def calibration(lab: Lab) -> Numbers:
    """Statistics of the smallest SubNet's BatchNorm beside those of the processor.

    Raises:
        FitnessError: they differ by more than ``LOSS`` of their largest value.
    """
    calibrator, subnet = Calibrator(lab.data, lab.finetune.calibration), lab.net.smallest()
    pairs = []
    for device in (CPU, lab.device):
        with deterministic(torch.get_num_threads(), device):
            statistics = calibrator.statistics(lab.net.module().eval().to(device), subnet)
        pairs.append({name: torch.stack(pair).cpu() for name, pair in statistics.items()})
    ours, theirs = pairs
    apart = [(theirs[name] - ours[name]).abs().max() / ours[name].abs().max().clamp_min(1e-30) for name in ours]
    worst = float(torch.stack(apart).max())
    if not worst <= LOSS:
        raise FitnessError(
            f"statistics of BatchNorm on {lab.device} differ by {worst:.2g} from the processor's; expected {LOSS:g}"
        )
    return {"normalisations": len(ours), "difference": worst}


def moments(lab: Lab) -> Numbers:
    """The rule moments."""
    config = accuracy.MomentsConfig.from_section(lab.sections["moments"])
    preparation = prepare(lab.net, lab.data, config, lab.finetune.calibration)
    return {f"divergence_at_{share:g}": value for share, value in preparation.divergences.items()}


def single_modifications(lab: Lab) -> Numbers:
    """The rule sensitivity without further SubNets."""
    result = sensitivity.measure(lab.net, lab.data, lab.sensitivity, lab.folder / "sensitivity.jsonl")
    return {"modifications": len(result.rows), "accuracy": result.baseline}


def tests(lab: Lab) -> Numbers | None:
    """The tests that need CUDA, of a clone; None where there is no clone, no pytest, or no CUDA.

    Raises:
        FitnessError: one of them failed.
    """
    folder = places.ROOT / "tests"
    files = [str(path) for path in sorted(folder.rglob("test_*.py")) if MARK in path.read_text(encoding="utf-8")]
    if lab.device.type != "cuda" or not files:
        return None
    with tempfile.TemporaryFile("w+") as said:
        command = [sys.executable, "-m", "pytest", "-m", "cuda", "-q", "-x", "-p", "no:cacheprovider", *files]
        done = subprocess.run(command, cwd=places.ROOT, stdout=said, stderr=subprocess.STDOUT, check=False)
        said.seek(0)
        lines = said.read().strip().splitlines() or [""]
    if "No module named pytest" in lines[-1]:
        return None
    if done.returncode:
        raise FitnessError("tests that need CUDA failed: " + " / ".join(lines[-6:]))
    return {"pytest": lines[-1].strip("= ")}
