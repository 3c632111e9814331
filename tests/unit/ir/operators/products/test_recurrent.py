"""Recurrent layers that read maps whose widths and sides change, against onnxruntime."""

import numpy as np
import pytest

import autotailor
from operator_cases import Case, assert_all_forms_agree, case

SERIES = "m = ReduceMean <axes = [2], keepdims = 0> (t)  s = Transpose <perm = [2, 0, 1]> (m)  "
MEAN = "  mean = ReduceMean <axes = [0], keepdims = 0> (every)  y = Transpose <perm = [1, 0, 2]> (mean)"
BOTH = 'direction = "bidirectional"'


def layer(
    kind: str, attributes: str = "", gates: int = 1, count: int = 1, inputs: str = "w, r, b", **given: object
) -> Case:
    """A layer of 5 hidden numbers that reads the columns of a map."""
    text = f"hidden_size = 5{', ' * bool(attributes)}{attributes}"
    weights = {"w": (count, 5 * gates, 12), "r": (count, 5 * gates, 5), "b": (count, 10 * gates), **given}
    used = {name: each for name, each in weights.items() if name in inputs.split(", ")}
    return case(f"{SERIES}every = {kind} <{text}> (s, {inputs}){MEAN}", **used)  # type: ignore[arg-type]


CASES = {
    "gru of torch": layer("GRU", "linear_before_reset = 1", 3),
    "gru of keras": layer("GRU", "", 3),
    "gru in both directions": layer("GRU", f"{BOTH}, linear_before_reset = 1", 3, 2),
    "gru without a shift": layer("GRU", "", 3, inputs="w, r"),
    "gru with a first state": layer("GRU", "", 3, inputs="w, r, b, , h", h=(1, 1, 5)),
    "lstm": layer("LSTM", "", 4),
    "lstm backwards": layer("LSTM", 'direction = "reverse"', 4),
    "lstm with first states": layer("LSTM", BOTH, 4, 2, inputs="w, r, b, , h, c", h=(2, 1, 5), c=(2, 1, 5)),
    "rows of a map as a batch": case(
        "m = Transpose <perm = [0, 2, 3, 1]> (t)  q = Reshape (m, three)  s = Transpose <perm = [1, 0, 2]> (q)"
        "  every = LSTM <hidden_size = 5> (s, w, r, , , h, h)  one = Squeeze (every, ahead)"
        "  z = Transpose <perm = [1, 0, 2]> (one)  map = Reshape (z, four)  y = Transpose <perm = [0, 3, 1, 2]> (map)",
        three=[12, 12, 12],
        four=[1, 12, 12, 5],
        ahead=[1],
        w=(1, 20, 12),
        r=(1, 20, 5),
        h=np.zeros((1, 12, 5), np.float32),
    ),
    "elman": layer("RNN"),
    "last state": case(
        f"{SERIES}every, end = GRU <hidden_size = 5> (s, w, r)  y = Transpose <perm = [1, 0, 2]> (end)",
        w=(1, 15, 12),
        r=(1, 15, 5),
    ),
    "last cell": case(
        f"{SERIES}every, end, cell = LSTM <hidden_size = 5> (s, w, r)  y = Transpose <perm = [1, 0, 2]> (cell)",
        w=(1, 20, 12),
        r=(1, 20, 5),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    assert_all_forms_agree(CASES[name])


def test_a_form_that_is_not_known_is_named() -> None:
    model = layer("GRU", "clip = 1.0", 3).model()
    with pytest.raises(autotailor.AutoTailorError, match="GRU with clip is not known; export the network without it"):
        autotailor.compile(model)
