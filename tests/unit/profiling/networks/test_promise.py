"""The latency predictor's promise: whether a validation has kept it, and what is said where not."""

from __future__ import annotations

import pandas as pd
import pytest

from autotailor.profiling.networks.promise import Promise

PROMISE = Promise.from_section({"error": 0.05, "share": 0.95})


def validation(errors: list[float], noise: float) -> pd.DataFrame:
    return pd.DataFrame({"relative_error": errors, "noise_floor": [noise] * len(errors)})


@pytest.mark.parametrize(
    ("errors", "noise", "kept", "words"),
    [
        ([0.01, -0.05] * 10, 0.01, True, r"100% of 20 SubNets are predicted within 5% \(promised: 95%\)$"),
        ([0.01] * 19 + [0.2], 0.01, True, "95% of 20"),
        ([0.01] * 18 + [0.06, -0.2], 0.01, False, r"90% of 20.* is 1\.0%, so the predictor is at.*precision_target"),
        ([0.01] * 18 + [0.06, -0.2], 0.08, False, r"90% of 20.* is 8\.0%: see `python -m autotailor doctor`"),
    ],
    ids=["all", "just enough", "predictor", "noise"],
)
def test_a_broken_promise_is_told_with_its_likely_cause(
    errors: list[float], noise: float, kept: bool, words: str
) -> None:
    frame = validation(errors, noise)
    assert PROMISE.is_kept(frame) is kept
    assert pd.Series([PROMISE.verdict(frame)]).str.contains(words).all()
