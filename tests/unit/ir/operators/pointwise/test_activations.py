"""Activations between two layers whose widths change, against onnxruntime."""

import pytest

from operator_cases import assert_all_forms_agree, case

PLAIN = ("Relu", "Sigmoid", "Tanh", "HardSwish", "Softplus", "Softsign", "Elu", "Selu", "LeakyRelu", "HardSigmoid")
CASES = {
    **{kind: case(f"y = {kind} (t)") for kind in PLAIN},
    "Mish": case("y = Mish (t)", opset=18),
    "Gelu": case("y = Gelu (t)", opset=20),
    "Gelu by tanh": case('y = Gelu <approximate = "tanh"> (t)', opset=20),
    "slope": case("y = LeakyRelu <alpha = 0.2> (t)"),
    "hard sigmoid, slope": case("y = HardSigmoid <alpha = 0.3> (t)"),
    "hard sigmoid, shift": case("y = HardSigmoid <alpha = 0.1666667, beta = 0.4> (t)"),
    "Celu": case("y = Celu <alpha = 2.0> (t)"),
    "Shrink": case("y = Shrink <lambd = 0.3, bias = 0.1> (t)"),
    "ThresholdedRelu": case("y = ThresholdedRelu <alpha = 0.3> (t)"),
    "softmax over channels": case("y = Softmax <axis = 1> (t)"),
    "softmax of a row": case("y = Softmax (t)", row=True),
    "log softmax": case("y = LogSoftmax <axis = -1> (t)"),
}


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    assert_all_forms_agree(CASES[name])
