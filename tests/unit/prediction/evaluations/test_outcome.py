"""Outcomes as texts."""

import base64
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotailor.prediction import Outcome
from autotailor.prediction.evaluations.noise import by_base, log_odds, of_values
from autotailor.prediction.evaluations.outcome import PredictionError

OUTCOME = Outcome(np.arange(11) % 3 == 0, np.linspace(0.0, 40.0, 11, dtype=np.float32))


def test_an_outcome_is_read_as_it_was_written() -> None:
    found = Outcome.unpacked(*OUTCOME.packed(), 11)
    np.testing.assert_array_equal(found.values, OUTCOME.values)
    np.testing.assert_array_equal(found.losses, OUTCOME.losses)
    assert (found.values.dtype, found.losses.dtype) == (np.float64, np.float32)


def test_texts_hold_a_bit_and_four_bytes_for_each_image() -> None:
    right, losses = (base64.b64decode(text) for text in OUTCOME.packed())
    assert right == bytes([0b10010010, 0b01000000])
    assert struct.unpack("<11f", losses) == tuple(OUTCOME.losses.tolist())


def text(*losses: float) -> str:
    return base64.b64encode(struct.pack(f"<{len(losses)}f", *losses)).decode()


@pytest.mark.parametrize(
    ("right", "losses", "says"),
    [
        ("gA==", text(1.0), "a loss for each of 2 images, found 4 bytes"),
        ("gICA", text(1.0, 2.0), "a bit or two bytes for each of 2 images, found 3 bytes"),
        ("gA==", text(1.0, float("nan")), "not finite"),
        ("gA==", text(float("inf"), 1.0), "not finite"),
        ("gA==", "?", "base64"),
        ("AEAAQA==", text(1.0, 1.0), "between 0 and 1"),
    ],
    ids=["losses", "bits", "nan", "infinite", "no Base64", "values of 2"],
)
def test_texts_that_do_not_fit_are_refused(right: str, losses: str, says: str) -> None:
    with pytest.raises(ValueError, match=f"(?i){says}"):
        Outcome.unpacked(right, losses, 2)


SHARES = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=40)


@settings(deadline=None)
@given(SHARES)
def test_values_between_0_and_1_are_read_as_they_were_written(values: list[float]) -> None:
    outcome = Outcome(np.array(values), np.zeros(len(values), dtype=np.float32))
    found = Outcome.unpacked(*outcome.packed(), len(values))
    np.testing.assert_array_equal(found.values, outcome.values)
    np.testing.assert_allclose(outcome.values, values, atol=2.0**-12)


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_right_answers_take_a_bit_each_whatever_their_type(right: list[bool]) -> None:
    losses = np.zeros(len(right), dtype=np.float32)
    texts = {Outcome(np.array(right, dtype=kind), losses).packed()[0] for kind in (np.bool_, np.int64, np.float32)}
    assert texts == {base64.b64encode(np.packbits(right).tobytes()).decode()}


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan, np.inf])
def test_other_values_are_refused(value: float) -> None:
    with pytest.raises(PredictionError, match="between 0 and 1"):
        Outcome(np.array([0.5, value]), np.zeros(2, dtype=np.float32))


@settings(deadline=None)
@given(SHARES, st.integers(2, 50))
def test_log_odds_of_values_are_those_of_as_many_right_answers(values: list[float], images: int) -> None:
    total = Outcome(np.array(values), np.zeros(len(values), dtype=np.float32)).values.sum()
    images += len(values)
    below, above = log_odds(np.floor(total), images), log_odds(np.ceil(total), images)
    assert below <= log_odds(total, images) <= above


@settings(deadline=None)
@given(SHARES)
def test_the_noise_of_values_is_the_change_of_log_odds_with_their_mean(values: list[float]) -> None:
    """Values are at most as uncertain as answers of which as many are right, and effects of images cancel out."""
    found = Outcome(np.array(values), np.zeros(len(values), dtype=np.float32)).values[None]
    effects = of_values(found)
    assert effects.sum() == pytest.approx(0.0, abs=1e-6)
    variance = np.square(by_base(effects, np.arange(len(values)))).sum()
    share, n = (found.sum() + 0.5) / (found.size + 1), found.size
    answers = found.mean() * (1 - found.mean()) / (share * (1 - share)) ** 2 / (n - 1)
    assert variance <= answers + 1e-9
