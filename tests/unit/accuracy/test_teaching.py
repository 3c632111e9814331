"""Where pictures have no labels, the answers of the original network are the labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import autotailor
import networks
import tiny_data
import training
from autotailor.accuracy import correctness, with_labels
from autotailor.data import DataError, DataSplits
from autotailor.data.labels import UNKNOWN
from autotailor.data.splits import TensorEvaluationSet


@pytest.fixture(scope="module")
def net() -> autotailor.SuperNet:
    return autotailor.compile(training.fresh(3), networks.SPACES["resnet"], name="resnet", resolution=32)


def unlabelled() -> DataSplits:
    """Images of any brightness, so that an untrained network does not give all of them the same class."""
    splits = tiny_data.splits()
    bright = torch.linspace(-9, 9, 40).reshape(-1, 1, 1, 1)
    validation, test = (
        TensorEvaluationSet(images.images * bright, np.full(40, UNKNOWN), images.groups)  # type: ignore[attr-defined]
        for images in (splits.validation, splits.test)
    )
    return replace(splits, validation=validation, test=test, labelled=False, num_classes=0)


def test_the_answers_of_the_original_network_are_the_labels(net: autotailor.SuperNet, tmp_path: Path) -> None:
    net.save(tmp_path / "compiled.pt")
    data = with_labels(unlabelled(), str(tmp_path / "compiled.pt"))
    network = net.build(net.largest(), logits=True).eval()
    images, labels = next(data.test.batches(40))
    with torch.no_grad():
        assert torch.equal(network(images).argmax(1), labels)
    assert data.num_classes == 5
    assert len(set(data.test.labels.tolist())) > 1
    assert np.array_equal(np.concatenate([part for _, part in data.test.batches(7)]), data.test.labels)
    assert correctness(network, data.validation).all()
    assert data.fingerprint != unlabelled().fingerprint


def test_data_with_labels_are_left_alone_and_no_file_is_read() -> None:
    data = tiny_data.splits()
    assert with_labels(data, "no such file") is data


def test_nothing_is_right_or_wrong_without_a_label(net: autotailor.SuperNet) -> None:
    with pytest.raises(DataError, match=r"40 of 40 images have no label; accuracy\.with_labels"):
        correctness(net.build(net.largest()), unlabelled().test)


def test_a_part_of_answered_images_keeps_their_answers(net: autotailor.SuperNet) -> None:
    data, positions = with_labels(unlabelled(), net), np.array([2, 9, 33])
    part = data.validation.part(positions)
    images, labels = next(part.batches(8))
    whole, answers = next(data.validation.batches(40))
    assert torch.equal(images, whole[positions])
    assert labels.tolist() == answers[positions].tolist()
    assert part.groups.tolist() == data.validation.groups[positions].tolist()
