"""The file of an outcome."""

import json
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
from controls.outcome import Outcome

RIGHT = np.arange(13) % 3 == 0


def test_a_file_gives_the_outcome_back(tmp_path: Path) -> None:
    path = tmp_path / "alone_50" / "lr_0.01.json"
    tried = ((0.01, 91.0), (0.03, 90.0))
    outcome = Outcome(91.0, RIGHT, "width 0.5", 0.3, 0.4, "6 of 36", 64, 96, 0.01, tried, 0.45)
    outcome.write(path)
    read = Outcome.read(path)
    assert np.array_equal(read.right, RIGHT)
    assert read.right.dtype == np.bool_
    assert asdict(read) | {"right": 0} == asdict(outcome) | {"right": 0}


def test_a_latency_that_is_not_known_stays_unknown(tmp_path: Path) -> None:
    Outcome(91.0, RIGHT, "width 0.5", 0.3).write(tmp_path / "a.json")
    assert math.isnan(Outcome.read(tmp_path / "a.json").latency)


def test_a_file_without_the_latency_of_a_polished_subnet_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    Outcome(91.0, RIGHT, "width 0.5", 0.3, 0.4).write(path)
    content = json.loads(path.read_text())
    del content["polished"]
    path.write_text(json.dumps(content))
    read = Outcome.read(path)
    assert read.latency == 0.4
    assert math.isnan(read.polished)
