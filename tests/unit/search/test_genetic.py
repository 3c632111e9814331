"""The genetic search against the beam search that it begins with."""

from __future__ import annotations

from autotailor.search import (
    Front,
    Objectives,
    SearchConfig,
)
from autotailor.search.beam import beam_search
from autotailor.search.genetic import genetic_front
from autotailor.search.optimizer import hypervolume_ratio

QUICK = SearchConfig(population=40, generations=30)


def test_the_genetic_search_beats_its_start(objectives: Objectives) -> None:
    found = Front.of(objectives, beam_search(objectives, QUICK.beam_width), "beam")
    assert hypervolume_ratio(found, genetic_front(objectives, QUICK)) < 1
