"""The best SubNet at each budget."""

from dataclasses import replace

import numpy as np
import pytest

from autotailor.ir.space.link import LOGIT
from autotailor.search import Objectives, SearchConfig, SearchError, exact_front
from autotailor.search.best import best_at

BUDGETS = ["30%", "60%", "90%"]


def test_it_is_the_exact_front_at_each_budget(objectives: Objectives) -> None:
    found = best_at(objectives.cost, BUDGETS, SearchConfig())(objectives.accuracy)
    front = exact_front(objectives).front
    total = objectives.cost.predict(np.zeros((1, len(objectives.space)), dtype=int))[0]
    expected = [front.at(share * total).to_array() for share in (0.3, 0.6, 0.9)]
    np.testing.assert_array_equal(found, expected)


def test_a_link_changes_no_subnet(objectives: Objectives) -> None:
    best = best_at(objectives.cost, BUDGETS, SearchConfig())
    terms = tuple(replace(term, table=term.table / 10) for term in objectives.accuracy.terms)
    plain = replace(objectives.accuracy, constant=3.0, terms=terms)
    np.testing.assert_array_equal(best(plain), best(replace(plain, link=LOGIT)))


def test_without_an_exact_front_the_genetic_search_answers(objectives: Objectives) -> None:
    quick = SearchConfig(population=20, generations=3, exact_table=5)
    assert best_at(objectives.cost, 2, quick)(objectives.accuracy).shape == (2, len(objectives.space))
    with pytest.raises(SearchError, match="exact_table"):
        best_at(objectives.cost, 2, replace(quick, exact="always"))(objectives.accuracy)
