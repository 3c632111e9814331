"""Normalisations between two layers whose widths change, against onnxruntime."""

import numpy as np
import pytest

from operator_cases import CHANNELS, SIDE, assert_all_forms_agree, case

C, VECTOR = CHANNELS, (CHANNELS,)
GROUPS = "y = GroupNormalization <num_groups = %d, epsilon = 0.001> (t, g, s)"
CASES = {
    "batch": case(
        "y = BatchNormalization <epsilon = 0.001> (t, g, s, m, v)",
        g=VECTOR, s=VECTOR, m=VECTOR, v=np.linspace(0.5, 1.5, C, dtype=np.float32),
    ),
    "instance": case("y = InstanceNormalization <epsilon = 0.001> (t, g, s)", g=VECTOR, s=VECTOR),
    "three groups": case(GROUPS % 3, opset=21, g=VECTOR, s=VECTOR),
    "one group": case(GROUPS % 1, opset=21, g=VECTOR, s=VECTOR),
    "each channel a group": case(GROUPS % C, opset=21, g=VECTOR, s=VECTOR),
    "layer, a row": case("y = LayerNormalization <epsilon = 0.001> (t, g, s)", row=True, g=VECTOR, s=VECTOR),
    "layer, no shift": case("y = LayerNormalization (t, g)", row=True, g=VECTOR),
    "layer, one gain": case("y = LayerNormalization (t, g)", row=True, g=(1,)),
    "layer, everything": case(
        "y = LayerNormalization <axis = 1> (t, g, s)", g=(C, SIDE, SIDE), s=(C, SIDE, SIDE), resizes=False
    ),
    "local response": case("y = LRN <size = 5, alpha = 0.3, beta = 0.6, bias = 1.5> (t)"),
    "local response, one channel": case("y = LRN <size = 1, alpha = 0.3> (t)"),
    "norm": case("y = LpNormalization <axis = 1, p = 2> (t)"),
    "absolute norm": case("y = LpNormalization <axis = 1, p = 1> (t)"),
    "absolute norm of a row": case("y = LpNormalization <axis = -1, p = 1> (t)", row=True),
    # behind a sigmoid, because the mean over the pixels of each channel, which the logits are made of, would be 0
    "mean and variance": case("n = MeanVarianceNormalization <axes = [2, 3]> (t)  y = Sigmoid (n)"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    assert_all_forms_agree(CASES[name])
