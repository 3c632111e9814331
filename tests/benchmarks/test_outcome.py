"""The file of an outcome."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
from controls.outcome import Outcome

RIGHT = np.arange(13) % 3 == 0


def test_a_file_gives_the_outcome_back(tmp_path: Path) -> None:
    path = tmp_path / "alone_50" / "lr_0.01.json"
    outcome = Outcome(91.0, RIGHT, "width 0.5", 0.3, 0.4, "6 of 36", 64, 96, 0.01, ((0.01, 91.0), (0.03, 90.0)))
    outcome.write(path)
    read = Outcome.read(path)
    assert np.array_equal(read.right, RIGHT)
    assert read.right.dtype == np.bool_
    assert asdict(read) | {"right": 0} == asdict(outcome) | {"right": 0}


def test_a_latency_that_is_not_known_stays_unknown(tmp_path: Path) -> None:
    Outcome(91.0, RIGHT, "width 0.5", 0.3).write(tmp_path / "a.json")
    assert math.isnan(Outcome.read(tmp_path / "a.json").latency)
