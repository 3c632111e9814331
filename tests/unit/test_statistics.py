import numpy as np
import pytest
from scipy import stats

from autotailor.statistics import (
    StatisticsError,
    accuracy,
    accuracy_drop,
    clustered_mean,
    coverage,
    kendall_tau,
    kendall_tau_by_chance,
    kendall_tau_ceiling,
    kendall_tau_error,
    kendall_tau_text,
)


def test_groups_of_one_give_the_usual_standard_error() -> None:
    values = np.random.default_rng(0).normal(size=50)
    mean, error = clustered_mean(values, np.arange(50))
    assert mean == pytest.approx(values.mean())
    assert error == pytest.approx(values.std(ddof=1) / np.sqrt(50))


def test_copies_of_one_image_carry_no_further_information() -> None:
    values = np.random.default_rng(0).integers(0, 2, 40)
    _, single = clustered_mean(values, np.arange(40))
    _, copied = clustered_mean(np.repeat(values, 7), np.repeat(np.arange(40), 7))
    assert copied == pytest.approx(single)


def test_the_standard_error_is_that_of_repeated_draws() -> None:
    random = np.random.default_rng(1)
    means, errors = [], []
    for _ in range(400):
        difficulty = random.random(60)
        right = random.random((7, 60)) < difficulty
        mean, error = clustered_mean(right.ravel(), np.tile(np.arange(60), 7))
        means.append(mean)
        errors.append(error)
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.1)


def test_drops_are_paired() -> None:
    before = np.array([1, 1, 1, 1, 0, 0, 1, 1], dtype=bool)
    after = before.copy()
    after[0] = False
    drop, error = accuracy_drop(before, after, np.arange(8))
    assert drop == pytest.approx(12.5)
    assert error == pytest.approx(12.5)
    assert accuracy_drop(before, before, np.arange(8)) == (0.0, 0.0)
    assert accuracy(before, np.arange(8))[0] == 75.0


def test_one_group_has_no_standard_error() -> None:
    assert np.isnan(clustered_mean([1.0, 0.0], [3, 3])[1])


@pytest.mark.parametrize(("values", "groups"), [([], []), ([1, 2], [1]), ([[1]], [[1]])])
def test_shapes_that_do_not_fit_are_refused(values: list[object], groups: list[object]) -> None:
    with pytest.raises(StatisticsError, match="groups"):
        clustered_mean(values, groups)


def test_comparing_other_images_is_refused() -> None:
    with pytest.raises(StatisticsError, match="same images"):
        accuracy_drop([1, 0], [1], [0, 1])


def test_kendall_tau() -> None:
    assert kendall_tau([1, 2, 3, 4], [10, 20, 30, 40]) == 1.0
    assert kendall_tau([1, 2, 3], [3, 2, 1]) == -1.0
    assert kendall_tau([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx(2 / 3)
    assert np.isnan(kendall_tau([1, 1, 1], [1, 2, 3]))
    tied, others = np.random.default_rng(0).integers(0, 6, (2, 30))
    assert kendall_tau(tied, others) == stats.kendalltau(tied, others).statistic
    for bad in (([1], [1]), ([1, 2], [1]), ([1, np.nan], [1, 2])):
        with pytest.raises(StatisticsError, match="tau"):
            kendall_tau(*bad)


def test_a_message_never_says_nan() -> None:
    assert kendall_tau_text(kendall_tau([1, 2, 3, 4], [1, 2, 4, 3])) == "0.667"
    assert "all values of one side are equal" in kendall_tau_text(kendall_tau([1, 1], [1, 2]))


def test_the_error_of_tau_is_that_of_repeated_draws() -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=(60, 2, 30))
    values[:, 1] += values[:, 0]
    taus = [kendall_tau(a, b) for a, b in values]
    errors = [kendall_tau_error(a, b) for a, b in values]
    assert np.mean(errors) == pytest.approx(np.std(taus), rel=0.2)
    assert np.isnan(kendall_tau_error([1, 2, 3], [1, 2, 4]))


def test_tau_of_unrelated_numbers_scatters_by_chance() -> None:
    random = np.random.default_rng(0)
    taus = [kendall_tau(*random.normal(size=(2, 20))) for _ in range(400)]
    assert np.std(taus) == pytest.approx(kendall_tau_by_chance(20), rel=0.1)


def test_the_ceiling_is_the_tau_of_the_truth() -> None:
    random = np.random.default_rng(0)
    taus, ceilings = [], []
    for _ in range(60):
        truth = random.normal(size=25)
        measured = truth + 0.5 * random.normal(size=25)
        taus.append(kendall_tau(truth, measured))
        ceilings.append(kendall_tau_ceiling(measured, np.full(25, 0.5), draws=40))
    assert np.mean(ceilings) == pytest.approx(np.mean(taus), abs=0.03)
    assert kendall_tau_ceiling([1.0, 2.0, 3.0], [0.0, 0.0, 0.0]) == 1.0
    assert kendall_tau_ceiling([1.0, 2.0, 3.0], [9.0, 9.0, 9.0]) == 0.0
    assert np.isnan(kendall_tau_ceiling([1.0, 1.0], [0.1, 0.1]))


def test_80_percent_intervals_cover_80_percent_whatever_the_shift() -> None:
    random = np.random.default_rng(0)
    errors = random.uniform(0.5, 2.0, (500, 8))
    shares = [coverage(e * random.normal(size=8) + 7.0, e) for e in errors]
    assert np.mean(shares) == pytest.approx(0.8, abs=0.02)
    assert coverage([0.0, 0.0, 9.0], [0.1, 0.1, 0.1]) == 0.0
