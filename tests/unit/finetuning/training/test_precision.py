"""Precisions of training, and the factor of the loss in float16."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import tiny_data
from autotailor import finetuning
from autotailor.data import DataSplits
from autotailor.finetuning.training.precision import LossScaler, resolve
from training import PRETRAIN, equal, fresh

CPU = torch.device("cpu")


@pytest.mark.parametrize(("supported", "expected"), [(True, "bf16"), (False, "fp16")])
def test_auto_on_cuda_is_bfloat16_where_the_gpu_computes_in_it(
    monkeypatch: pytest.MonkeyPatch, supported: bool, expected: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: supported)
    assert resolve("auto", "cuda") == expected


@pytest.mark.parametrize(("supported", "expected"), [(True, "bf16"), (False, "fp32")])
def test_auto_on_the_processor_is_bfloat16_where_it_has_instructions(
    monkeypatch: pytest.MonkeyPatch, supported: bool, expected: str
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: supported)
    assert resolve("auto", "cpu") == expected
    assert resolve("auto", "mps") == "fp32"


def test_training_in_float16_learns_and_is_resumed_bit_equal(tiny: DataSplits, tmp_path: Path) -> None:
    short = replace(PRETRAIN, epochs=2)  # a processor computes slowly in float16
    plain, mixed = finetuning.pretrain(fresh(), tiny, short, tmp_path / "plain"), replace(short, precision="fp16")
    whole = finetuning.pretrain(fresh(), tiny, mixed, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        finetuning.pretrain(fresh(), tiny_data.splits(fail_at=(1, 1)), mixed, tmp_path / "killed")
    assert equal(finetuning.pretrain(fresh(), tiny, mixed, tmp_path / "killed").state_dict, whole.state_dict)
    assert all(tensor.dtype != torch.float16 for tensor in whole.state_dict.values())
    assert not equal(whole.state_dict, plain.state_dict)
    assert whole.history[-1]["loss"] == pytest.approx(plain.history[-1]["loss"], rel=0.1)


def test_an_overflow_leaves_the_step_out_and_halves_the_factor() -> None:
    weight = nn.Parameter(torch.ones(1))
    optimizer, scaler = torch.optim.SGD([weight], lr=1.0), LossScaler("fp16", CPU)
    before = scaler.factor
    for gradient, expected, factor in ((torch.inf, 1.0, before / 2), (0.25 * before / 2, 0.75, before / 2)):
        weight.grad = torch.tensor([gradient])
        scaler.unscale(optimizer)
        scaler.step(optimizer)
        assert weight.item() == expected
        assert scaler.factor == factor


def test_a_training_goes_on_with_its_factor() -> None:
    weight = nn.Parameter(torch.ones(1))
    optimizer, scaler, again = torch.optim.SGD([weight], lr=1.0), LossScaler("fp16", CPU), LossScaler("fp16", CPU)
    weight.grad = torch.tensor([torch.inf])
    scaler.unscale(optimizer)
    scaler.step(optimizer)
    again.load_state_dict(scaler.state_dict())
    assert again.factor == scaler.factor != LossScaler("fp16", CPU).factor


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_other_precisions_leave_loss_and_gradients_alone(precision: str) -> None:
    weight = nn.Parameter(torch.ones(1))
    optimizer, scaler = torch.optim.SGD([weight], lr=1.0), LossScaler(precision, CPU)
    weight.grad = torch.tensor([0.25])
    scaler.unscale(optimizer)
    scaler.step(optimizer)
    assert (scaler.factor, weight.item(), scaler.state_dict()) == (1.0, 0.75, {})
