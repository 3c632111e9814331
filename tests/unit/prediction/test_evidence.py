"""Prior variances by marginal likelihood."""

import numpy as np
import pytest

from autotailor.prediction.evidence import MISFIT, TYPICAL, maximise


def test_the_variances_behind_data_are_found() -> None:
    random = np.random.default_rng(0)
    useful, useless = random.standard_normal((150, 10)), random.standard_normal((150, 10))
    noise = np.full(150, 0.01)
    targets = useful @ random.normal(0, 0.5, 10) + random.normal(0, np.sqrt(0.05), 150) + random.normal(0, 0.1, 150)
    found = maximise({"choices": useful @ useful.T, "pairs": useless @ useless.T}, targets, noise)
    assert found["choices"] == pytest.approx(0.25, rel=0.7)
    assert found[MISFIT] == pytest.approx(0.05, rel=0.3)
    assert found["pairs"] < 0.001


def test_without_evaluations_the_variances_are_typical() -> None:
    found = maximise({"choices": np.zeros((0, 0))}, np.zeros(0), np.zeros(0))
    assert found == pytest.approx({"choices": TYPICAL["choices"], MISFIT: TYPICAL[MISFIT]})
