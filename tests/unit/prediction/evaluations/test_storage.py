"""Files of evaluations."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from autotailor.prediction import PredictionError
from autotailor.prediction.evaluations.storage import COLUMNS, read_outcomes, write_outcomes


@pytest.fixture(scope="module")
def outcomes(world):
    return world.outcomes(5)


def test_evaluations_are_read_as_they_were_written(world, outcomes, tmp_path: Path) -> None:
    write_outcomes(tmp_path / "e.csv", outcomes)
    found = read_outcomes(tmp_path / "e.csv", world.net.space, world.groups)
    assert found.subnets == outcomes.subnets
    np.testing.assert_array_equal(found.values, outcomes.values)
    np.testing.assert_array_equal(found.losses, outcomes.losses)
    np.testing.assert_array_equal(found.reference.values, outcomes.reference.values)
    np.testing.assert_array_equal(found.reference.losses, outcomes.reference.losses)
    table = pd.read_csv(tmp_path / "e.csv")
    assert tuple(table.columns) == COLUMNS
    assert table.accuracy[0] == pytest.approx(100 * outcomes.reference.values.mean())


def test_evaluations_that_do_not_fit_are_refused(world, outcomes, tmp_path: Path) -> None:
    write_outcomes(tmp_path / "e.csv", outcomes)
    with pytest.raises(PredictionError, match="each of 80 images"):
        read_outcomes(tmp_path / "e.csv", world.net.space, np.arange(80))
    table = pd.read_csv(tmp_path / "e.csv")
    for column in ("right", "losses"):  # the second is missing in files from before losses were kept
        table.drop(columns=column).to_csv(tmp_path / "less.csv", index=False)
        with pytest.raises(PredictionError, match=rf"the column {column} is missing.*; run the rule sensitivity"):
            read_outcomes(tmp_path / "less.csv", world.net.space, world.groups)
    table.assign(assignment='{"x":1}').to_csv(tmp_path / "other.csv", index=False)
    with pytest.raises(PredictionError, match="unknown variable 'x'"):
        read_outcomes(tmp_path / "other.csv", world.net.space, world.groups)
