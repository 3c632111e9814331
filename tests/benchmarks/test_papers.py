"""The methods of other papers: answers that are kept, the pairs of the table, and what a budget takes."""

from pathlib import Path

import numpy as np
import pytest
from papers.answers import Answer, read_all, standings, table
from papers.campaign import at_budgets
from papers.costs import lines, own_images


def answer(method: str, budget: int, right: list[bool], latency: float = 0.0, polished: float = 0.0) -> Answer:
    found = np.array(right)
    return Answer(method, 0, budget, latency or budget, method, 100, 50.0, polished, ~found, found)


def test_an_answer_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = answer("adascale, exits", 30, [True, False, True])
    written.write(tmp_path)
    (read,) = read_all(tmp_path)
    assert Answer.path(tmp_path, "adascale, exits", 0, 30).exists()
    assert (read.method, read.budget, read.polished_right.tolist()) == ("adascale, exits", 30, [True, False, True])


def test_a_rival_is_behind_by_the_pictures_that_ours_alone_has_right() -> None:
    ours, theirs = (
        answer("autotailor", 50, [True, True, True, False]),
        answer("legodnn", 50, [True, False, False, False]),
    )
    rows = table([theirs, ours], np.arange(4), ("autotailor", "legodnn")).set_index("method")
    assert rows.loc["legodnn", "polished_behind"] == pytest.approx(50.0)
    assert rows.loc["legodnn", "inherited_behind"] == pytest.approx(-50.0)
    assert rows.loc["autotailor", "polished_behind"] == 0
    (standing,) = standings(rows.reset_index())
    assert (standing["best rival"], standing["ahead"]) == ("legodnn", pytest.approx(-50.0))


def test_a_budget_takes_the_best_network_within_it_by_validation_and_none_where_all_are_slower() -> None:
    ratios = [answer("nestdnn", 90, [True], 80.0, 91.0), answer("nestdnn", 50, [True], 40.0, 92.0)]
    found = {each.budget: each.latency for each in at_budgets(ratios, (30, 40, 90))}
    assert found == {40: 40.0, 90: 40.0}


def test_a_subnet_that_serves_two_budgets_is_trained_once() -> None:
    assert own_images([answer("a", 50, [True]), answer("a", 60, [True]), answer("b", 60, [True])]) == 200


def test_comments_and_empty_lines_are_no_lines_of_configuration() -> None:
    assert lines("# a comment\n\nkey: 1   # said\n  inner: 2\n") == 2
