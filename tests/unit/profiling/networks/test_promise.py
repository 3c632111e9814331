"""The latency predictor's promise: whether a validation has kept it, and what is said where not."""

import pandas as pd
import pytest

from autotailor.profiling.networks.promise import Promise, drift, measured_in_quiet

PROMISE = Promise.from_section({"error": 0.05, "share": 0.95})
WELL, BADLY = [0.01, -0.05] * 10, [0.01] * 18 + [0.06, -0.2]


def validation(errors: list[float], noise: float, pace: float = 1.0) -> pd.DataFrame:
    count = len(errors)
    columns = {"noise_floor": [noise] * count, "anchor_drift": [pace - 1] * count, "follows": [0.25] * count}
    return pd.DataFrame({"relative_error": errors, "raw_error": [0.01] * count, **columns})


@pytest.mark.parametrize(
    ("errors", "noise", "pace", "kept", "words"),
    [
        (WELL, 0.01, 1.0, True, r"100% of 20 SubNets are predicted within 5% \(promised: 95%\)$"),
        ([0.01] * 19 + [0.2], 0.01, 1.2, True, "95% of 20"),
        (BADLY, 0.01, 1.04, False, r"90% of 20.*The predictor is the cause.*precision_target"),
        (BADLY, 0.08, 1.0, False, r"90% of 20.*machine may be the cause: .* is 8\.0%.*`python -m autotailor doctor`"),
        (
            BADLY,
            0.01,
            1.1,
            False,
            r"may be the cause: .* 10\.0% slower.* 25%.*without correction 100% are within 5%",
        ),
        (BADLY, 0.08, 0.9, False, r"is 8\.0%, above 3%, and the anchor is 10\.0% faster than"),
    ],
    ids=["all", "just enough", "predictor", "noise", "slower", "noise and faster"],
)
def test_a_broken_promise_is_told_with_its_likely_cause(
    errors: list[float], noise: float, pace: float, kept: bool, words: str
) -> None:
    frame = validation(errors, noise, pace)
    assert PROMISE.is_kept(frame) is kept
    assert pd.Series([PROMISE.verdict(frame)]).str.contains(words).all()


def test_a_restless_part_of_the_time_is_not_called_quiet() -> None:
    frame = validation(BADLY, 0.01)
    frame.loc[[18, 19], "anchor_drift"] = [0.3, -0.25]
    assert "was quiet" not in PROMISE.verdict(frame)
    assert "off by more than 20% from the LUT's for 2 of 20 SubNets" in PROMISE.verdict(frame)
    frame.loc[19, "anchor_drift"] = -0.1  # one SubNet is what the promise leaves out
    assert "was quiet" in PROMISE.verdict(frame)


@pytest.mark.parametrize(
    ("tables", "measured", "chosen"),
    [
        ([validation(WELL, 0.08)], 1, 0),  # kept in spite of the noise
        ([validation(BADLY, 0.01)], 1, 0),  # the predictor is the cause, and measuring again would not help
        ([validation(BADLY, 0.08), validation(WELL, 0.02)], 2, 1),
        ([validation(BADLY, 0.04), validation(BADLY, 0.08), validation(WELL, 0.09)], 3, 0),
        ([validation(BADLY, 0.04, 1.3), validation(BADLY, 0.05), validation(BADLY, 0.04, 0.9)], 3, 1),
    ],
    ids=["kept", "predictor", "quiet later", "never quiet", "drift"],
)
def test_a_restless_machine_is_measured_again_and_the_quietest_table_counts(
    tables: list[pd.DataFrame], measured: int, chosen: int, caplog: pytest.LogCaptureFixture
) -> None:
    left = iter(tables)
    assert measured_in_quiet(lambda _: next(left), PROMISE, 3) is tables[chosen]
    assert len(list(left)) == len(tables) - measured
    assert caplog.text.count("measuring again") == measured - 1


def test_drift_is_how_much_slower_the_anchor_has_become() -> None:
    assert drift(validation(WELL, 0.01, 1.25)) == pytest.approx(0.25)
    assert drift(validation(WELL, 0.01, 0.8)) == pytest.approx(-0.2)
