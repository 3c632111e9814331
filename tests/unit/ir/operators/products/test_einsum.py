"""Contractions between two layers whose widths change, against onnxruntime."""

import pytest

from autotailor.ir.feature import OperatorFeature
from autotailor.ir.operators.rule import rules
from operator_cases import CHANNELS, assert_all_forms_agree, case

C = CHANNELS
CASES = {
    "channels": case('y = Einsum <equation = "nchw,cd->ndhw"> (t, w)', w=(C, 7)),
    "two activations": case('r = Relu (t)  y = Einsum <equation = "nchw,nchv->ncwv"> (t, r)'),
    "scores": case('u = Tanh (t)  s = Einsum <equation = "nchw,ndhw->ncd"> (t, u)  y = ReduceMean <axes = [2]> (s)'),
}


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    assert_all_forms_agree(CASES[name])


def test_every_letter_counts_once_in_the_macs() -> None:
    rule = rules.find("Einsum")
    assert rule is not None
    heads = OperatorFeature(
        "Einsum", ((2, 3, 5, 7), (2, 3, 11, 7)), ((2, 3, 5, 11),), (), (("equation", "bhqd,bhkd->bhqk"),)
    )
    assert rule.macs(heads) == 2 * 3 * 5 * 11 * 7
