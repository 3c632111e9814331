"""Whether answers are better than chance, and under which order of the classes they are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import fisher_exact

import tiny_data
from autotailor.data.splits import TensorEvaluationSet
from autotailor.task.interface import Asked
from autotailor.task.order import Answers, complaint


def answers(predicted: np.ndarray, labels: np.ndarray, classes: int) -> Answers:
    return Answers(predicted, labels, np.arange(len(labels)), classes)


def test_answers_at_random_are_chance_and_hide_no_order() -> None:
    rng = np.random.default_rng(0)
    above = 0
    for _ in range(300):
        classes = int(rng.integers(2, 30))
        found = answers(rng.integers(classes, size=300), rng.integers(classes, size=300), classes)
        above += found.above_chance()
        assert found.matched().mean() < max(0.62, 2.5 / classes)
    assert above <= 3  # one in a thousand is expected


@pytest.mark.parametrize("share", [0.5, 0.97])
def test_chance_is_what_guessing_the_most_frequent_class_gives(share: float) -> None:
    rng = np.random.default_rng(0)
    labels = (rng.random(1000) > share).astype(np.int64)
    constant = answers(np.zeros(1000, dtype=np.int64), labels, 2)
    assert not constant.above_chance()
    knowing = np.where(rng.random(1000) < 0.6, labels, 0)  # finds six of ten of the rare class
    assert answers(knowing, labels, 2).above_chance()


@pytest.mark.parametrize("spread", [[95, 2, 3], [95, 5, 0]])
def test_a_rare_class_that_is_found_without_false_alarms_is_above_chance(spread: list[int]) -> None:
    """As Fisher's exact test says of two classes, where nearly all images are right by chance."""
    often, missed, found = spread
    labels = np.repeat([0, 1, 1], spread)
    said = np.repeat([0, 0, 1], spread)
    table = [[found, missed], [0, often]]
    significant = fisher_exact(table, alternative="greater").pvalue < 1e-3
    assert significant == (found == 3)
    assert answers(said, labels, 2).above_chance() == significant


def test_a_network_that_is_right_on_all_of_few_images_hears_that_they_are_few() -> None:
    images = TensorEvaluationSet(torch.zeros(4, 3, 8, 8), np.array([0, 1, 0, 1]), range(4))
    found = Answers(images.labels, images.labels, np.arange(4), 2)
    assert not found.above_chance(0.05)
    asked = Asked(np.ones(4), images.labels, lambda images: np.zeros(len(images), dtype=np.int64))
    said = complaint(asked, replace(tiny_data.splits(), validation=images), 8, "it")
    assert "4 images are too few to tell these apart for sure" in said


def test_images_of_one_base_image_count_once() -> None:
    labels = np.repeat(np.array([0, 1, 0, 1, 0, 1]), 50)
    found = Answers(np.where(np.arange(300) < 250, labels, 0), labels, np.repeat(np.arange(6), 50), 2)
    assert found.right.mean() > 0.8
    assert not found.above_chance()


def test_two_classes_that_changed_places_are_enough() -> None:
    labels = np.arange(1000) % 10
    swapped = np.array([0, 1, 2, 4, 3, 5, 6, 7, 8, 9])
    found = answers(swapped[labels], labels, 10)
    assert found.above_chance()
    assert found.matched().all()
    np.testing.assert_array_equal(found.order(), swapped)
