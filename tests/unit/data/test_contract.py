"""Datasets that break their promise are named with what was expected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from autotailor import data
from autotailor.data.contract import check_images, check_splits, checked
from autotailor.data.registry import _FACTORIES, register
from autotailor.data.splits import Batch, DataSplits, TensorEvaluationSet, TrainStream

IMAGES, LABELS = torch.zeros(4, 3, 8, 8), torch.tensor([0, 1, 2, 0])


class Stream(TrainStream):
    def __len__(self) -> int:
        return 4

    def batches(self, epoch: int, batch_size: int, start: int = 0) -> Iterator[Batch]:
        yield IMAGES, LABELS


def evaluated(labels: Any = LABELS, images: torch.Tensor = IMAGES) -> TensorEvaluationSet:
    return TensorEvaluationSet(images, labels, range(len(images)))


SPLITS = DataSplits("mine", 3, 8, Stream(), evaluated(), evaluated(), (0.0,) * 3, (1.0,) * 3)


def test_splits_that_keep_the_promise_are_accepted() -> None:
    check_splits("mine", SPLITS)
    unknown = evaluated(np.full(4, -1))
    check_splits("mine", replace(SPLITS, validation=unknown, test=unknown, labelled=False, num_classes=0))
    assert list(checked(iter([(IMAGES, LABELS)]))) == [(IMAGES, LABELS)]
    (mixed,) = checked(iter([(IMAGES, torch.full((4, 3), 1 / 3))]))
    assert mixed[1].shape == (4, 3)


@pytest.mark.parametrize(
    ("splits", "words"),
    [
        (None, "load returned NoneType, expected DataSplits"),
        ((1, 2, 3), "load returned tuple, expected DataSplits"),
        (replace(SPLITS, train=evaluated()), "train is of TensorEvaluationSet, expected a TrainStream"),  # type: ignore[arg-type]
        (replace(SPLITS, test=Stream()), "test is of Stream, expected an EvaluationSet"),  # type: ignore[arg-type]
        (replace(SPLITS, validation=evaluated([], IMAGES[:0])), "validation holds no image"),
        (replace(SPLITS, validation=evaluated(LABELS[:1], IMAGES[:1])), "validation holds a single picture"),
        (replace(SPLITS, test=evaluated(LABELS + 1)), "labels of test are from 1 to 3, expected .* 0 to 2"),
        (replace(SPLITS, validation=evaluated(LABELS - 1)), "labels of validation are from -1 to 1"),
    ],
)
def test_what_is_no_dataset_is_refused_before_anything_is_trained(splits: object, words: str) -> None:
    with pytest.raises(data.DataError, match=f"dataset 'mine': {words}"):
        check_splits("mine", splits)


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        ((IMAGES.numpy(), LABELS), r"images of training are of ndarray, expected normalised images, a float32 tensor"),
        ((IMAGES.byte(), LABELS), r"a tensor of uint8 \[4, 3, 8, 8\]"),
        ((IMAGES[0], LABELS), r"a tensor of float32 \[3, 8, 8\]"),
        (
            (IMAGES, LABELS.int()),
            r"are a tensor of int32 \[4\], expected an int64 tensor \[4\]",
        ),
        ((IMAGES, LABELS.tolist()), "labels of 4 training images are of list"),
        ((IMAGES, LABELS[:, None]), r"a tensor of int64 \[4, 1\]"),
        ((IMAGES, LABELS[:3]), r"a tensor of int64 \[3\], expected an int64 tensor \[4\]"),
    ],
)
def test_a_batch_that_no_network_can_read_says_what_it_is(batch: Any, words: str) -> None:
    with pytest.raises(data.DataError, match=words):
        next(checked(iter([batch])))


def test_images_of_an_evaluation_are_checked() -> None:
    with pytest.raises(data.DataError, match=r"images of the data are a tensor of float64"):
        check_images(IMAGES.double(), "the data")


def test_a_function_of_the_registry_that_returns_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    data.names()
    monkeypatch.setattr("autotailor.data.registry._FACTORIES", dict(_FACTORIES))
    register("mine")(lambda section: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(data.DataError, match="dataset 'mine': its function made NoneType, expected a Dataset"):
        data.load({"name": "mine"})
