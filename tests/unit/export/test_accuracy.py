"""Accuracy of exported files."""

from pathlib import Path

import onnx

import tiny_data
from autotailor.export import accuracy_of_onnx
from onnx_text import model_of


def test_a_file_that_answers_nan_is_right_on_no_image(tmp_path: Path) -> None:
    """The first of its logits is the root of a negative number; NumPy takes NaN for the largest number."""
    body = "p = GlobalAveragePool (x)  f = Flatten (p)  a = Abs (f)  b = Neg (a)  c = Sub (b, one)  s = Sqrt (c)"
    body += "  y = Concat <axis = 1> (s, s, s, s)"  # logits of all ten classes
    onnx.save(model_of(body, {"one": 1.0}, shape=("n", 3, 32, 32)), str(tmp_path / "model.onnx"))
    assert not accuracy_of_onnx(tmp_path / "model.onnx", tiny_data.splits().test).any()
