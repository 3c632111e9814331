"""Outcomes as texts."""

from __future__ import annotations

import base64
import struct

import numpy as np
import pytest

from autotailor.prediction import Outcome

OUTCOME = Outcome(np.arange(11) % 3 == 0, np.linspace(0.0, 40.0, 11, dtype=np.float32))


def test_an_outcome_is_read_as_it_was_written() -> None:
    found = Outcome.unpacked(*OUTCOME.packed(), 11)
    np.testing.assert_array_equal(found.right, OUTCOME.right)
    np.testing.assert_array_equal(found.losses, OUTCOME.losses)
    assert (found.right.dtype, found.losses.dtype) == (np.bool_, np.float32)


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
        ("gICA", text(1.0, 2.0), "a bit for each of 2 images, found 3 bytes"),
        ("gA==", text(1.0, float("nan")), "not finite"),
        ("gA==", text(float("inf"), 1.0), "not finite"),
        ("gA==", "?", "base64"),
    ],
    ids=["losses", "bits", "nan", "infinite", "no Base64"],
)
def test_texts_that_do_not_fit_are_refused(right: str, losses: str, says: str) -> None:
    with pytest.raises(ValueError, match=f"(?i){says}"):
        Outcome.unpacked(right, losses, 2)
