"""The fingerprint of what a training depends on: any part of it changes the fingerprint."""

from __future__ import annotations

import pytest
import torch

from autotailor.accuracy.fingerprint import fingerprint

WEIGHTS = {"w": torch.arange(6.0).reshape(2, 3), "b": torch.zeros(2)}
BEFORE = fingerprint(["configuration", "data"], WEIGHTS)


def test_it_depends_neither_on_the_layout_nor_on_gradients() -> None:
    columns = WEIGHTS["w"].t().contiguous().t()
    assert not columns.is_contiguous()
    assert fingerprint(["configuration", "data"], {**WEIGHTS, "w": columns.clone().requires_grad_()}) == BEFORE
    assert len(BEFORE) == 64


@pytest.mark.parametrize(
    "weights",
    [
        {**WEIGHTS, "w": WEIGHTS["w"] + torch.eye(2, 3) * 1e-6},
        {**WEIGHTS, "w": WEIGHTS["w"].reshape(3, 2)},
        {**WEIGHTS, "w": WEIGHTS["w"].double()},
        {"v": WEIGHTS["w"], "b": WEIGHTS["b"]},
        {"b": WEIGHTS["b"], "w": WEIGHTS["w"]},
        {"w": WEIGHTS["w"]},
    ],
    ids=["value", "shape", "type", "name", "order", "one less"],
)
def test_other_weights_have_another(weights: dict[str, torch.Tensor]) -> None:
    assert fingerprint(["configuration", "data"], weights) != BEFORE


@pytest.mark.parametrize("texts", [["configuration"], ["data", "configuration"], ["configurationdata"], []])
def test_other_texts_have_another(texts: list[str]) -> None:
    assert fingerprint(texts, WEIGHTS) != BEFORE
