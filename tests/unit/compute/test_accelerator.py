"""Names of accelerators, and which of them this machine has."""

import pytest
import torch

from autotailor.compute.accelerator import AcceleratorError, check_name, check_present, resolve


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without accelerators, to which a test adds some."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    return monkeypatch


def add_gpus(machine: pytest.MonkeyPatch, count: int, current: int = 0) -> None:
    machine.setattr(torch.cuda, "is_available", lambda: True)
    machine.setattr(torch.cuda, "device_count", lambda: count)
    machine.setattr(torch.cuda, "current_device", lambda: current)


@pytest.mark.parametrize("name", ["auto", "cpu", "cuda", "cuda:0", "cuda:12", "mps"])
def test_known_names_pass(name: str) -> None:
    check_name(name, "here")


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "CUDA", "cpu:0", "", None, 0], ids=repr)
def test_another_name_is_refused_with_its_place(name: object) -> None:
    with pytest.raises(AcceleratorError, match=r"finetune.accelerator: unknown .* known are auto, cpu, cuda"):
        check_name(name, "finetune.accelerator")


def test_auto_takes_the_processor_where_there_is_nothing_else(machine: pytest.MonkeyPatch) -> None:
    assert resolve("auto") == torch.device("cpu") == resolve("cpu")


def test_auto_prefers_cuda_to_mps_and_mps_to_the_processor(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(torch.backends.mps, "is_available", lambda: True)
    assert resolve("auto") == torch.device("mps:0") == resolve("mps")
    add_gpus(machine, 2, current=1)
    assert resolve("auto") == torch.device("cuda:1") == resolve("cuda")
    assert resolve("cuda:0") == torch.device("cuda:0")


def test_a_gpu_whose_number_is_too_high_is_refused_with_the_known_ones(machine: pytest.MonkeyPatch) -> None:
    add_gpus(machine, 2)
    with pytest.raises(AcceleratorError, match="cuda:2: this machine has only cuda:0, cuda:1"):
        resolve("cuda:2")


@pytest.mark.parametrize(("name", "needs"), [("cuda", "NVIDIA"), ("cuda:1", "NVIDIA"), ("mps", "Apple")])
def test_a_named_accelerator_that_is_absent_is_an_error_that_says_what_it_needs(
    machine: pytest.MonkeyPatch, name: str, needs: str
) -> None:
    with pytest.raises(AcceleratorError, match=rf"accelerator {name}: .*{needs}.*auto"):
        check_present(name)


def test_what_every_machine_has_passes(machine: pytest.MonkeyPatch) -> None:
    check_present("auto")
    check_present("cpu")
