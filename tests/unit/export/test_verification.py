"""What comparisons of exported files come to."""

import math

import numpy as np

from autotailor.export.verification import Comparison, Verification, relative_error

REFERENCE = np.array([[1.0, -2.0]], dtype=np.float32)


def test_an_output_that_is_no_number_is_an_error_wherever_it_stands() -> None:
    nothing = np.full_like(REFERENCE, np.nan)
    assert relative_error((REFERENCE, 2 * REFERENCE), (REFERENCE, REFERENCE)) == 1.0
    for answers in ((nothing, REFERENCE), (REFERENCE, nothing)):
        assert math.isnan(relative_error(answers, (REFERENCE, REFERENCE)))


def test_of_two_files_of_one_runtime_the_worse_is_tracked() -> None:
    errors = {"model.onnx": 5e-4, "model.given.onnx": 1e-7}
    comparisons = tuple(Comparison(file, "onnxruntime", "1", error, 1.0) for file, error in errors.items())
    found = Verification("id", 1e-4, {}, [], comparisons, {})
    assert not found.passed
    assert found.metrics() == {"max_relative_error_onnxruntime": 5e-4}
