"""Mixtures of two images against torchvision's own."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional
from torchvision.transforms import v2

import tiny_data
from autotailor.data.augmentation.config import AugmentationConfig
from autotailor.data.augmentation.mixing import MIXING, Mixing, mixing
from autotailor.data.labels import UNKNOWN
from autotailor.data.preparation import Signal
from autotailor.data.seeding import generator
from autotailor.data.splits import TensorEvaluationSet

IMAGES, LABELS = tiny_data.draw(16, 3)
SEED, STEPS = 5, range(12)
TORCHVISIONS = {
    "mixup": (AugmentationConfig(mixup=0.4), v2.MixUp(alpha=0.4, num_classes=tiny_data.CLASSES)),
    "cutmix": (AugmentationConfig(cutmix=0.8), v2.CutMix(alpha=0.8, num_classes=tiny_data.CLASSES)),
}


def test_a_share_of_the_steps_is_mixed() -> None:
    mix = Mixing(AugmentationConfig(mixup=1.0, mixed=0.5), tiny_data.CLASSES, SEED)
    found = [mix(IMAGES, LABELS, step) for step in range(40)]
    whole = [shares for images, shares in found if torch.equal(images, IMAGES)]
    assert 10 < len(whole) < 30
    assert all(torch.equal(shares.argmax(1), LABELS) for shares in whole)


@pytest.mark.parametrize("name", TORCHVISIONS)
def test_two_neighbours_are_mixed_as_torchvision_mixes_a_batch_of_two(name: str) -> None:
    config, theirs = TORCHVISIONS[name]
    mix, changed = Mixing(config, tiny_data.CLASSES, SEED), 0
    for step in STEPS:
        images, shares = mix(IMAGES, LABELS, step)
        for first in range(0, 16, 2):
            pair = slice(first, first + 2)
            with torch.random.fork_rng(devices=[]):
                torch.set_rng_state(_after_the_choice(step))
                wanted, labels = theirs(IMAGES[pair], LABELS[pair])
            assert torch.equal(images[pair], wanted)
            assert torch.equal(shares[pair], labels)
        changed += not torch.equal(images, IMAGES)
        assert torch.allclose(shares.sum(1), torch.ones(16))
        assert images.is_contiguous(memory_format=torch.channels_last)
    assert changed > len(STEPS) / 2


def _after_the_choice(step: int) -> torch.Tensor:
    """State of the generator after one of the transforms has been chosen."""
    random = generator(SEED, MIXING, step)
    torch.multinomial(torch.ones(1), 1, generator=random)
    return random.get_state()


def test_a_mixed_label_says_which_part_of_the_pixels_is_whose() -> None:
    """In each pair one image is black and the other white."""
    black_and_white = torch.zeros(8, 3, 16, 16)
    black_and_white[1::2] = 1.0
    labels = torch.arange(8) % 2
    for config in (AugmentationConfig(mixup=1.0), AugmentationConfig(cutmix=1.0)):
        for step in STEPS:
            images, shares = Mixing(config, 2, SEED)(black_and_white, labels, step)
            assert torch.allclose(images.mean((1, 2, 3)), shares[:, 1], atol=1e-6)


def test_each_step_draws_one_of_both_kinds() -> None:
    both = Mixing(AugmentationConfig(mixup=1.0, cutmix=1.0), 2, SEED)
    black_and_white = torch.zeros(2, 3, 16, 16)
    black_and_white[1] = 1.0
    first = [both(black_and_white, torch.tensor([0, 1]), step)[0][0] for step in range(40)]
    is_mixup = [bool(0 < image.max() < 1) for image in first]  # CutMix leaves black and white
    assert 5 < sum(is_mixup) < 35


def test_parts_of_a_batch_with_even_numbers_of_images_are_mixed_as_the_whole() -> None:
    for config, _ in TORCHVISIONS.values():
        mix = Mixing(config, tiny_data.CLASSES, SEED)
        whole = mix(IMAGES, LABELS, 2)
        parts = [mix(IMAGES[part], LABELS[part], 2) for part in (slice(0, 6), slice(6, 16))]
        for position in (0, 1):
            assert torch.equal(torch.cat([part[position] for part in parts]), whole[position])


@pytest.mark.parametrize("count", [1, 5])
def test_the_last_image_of_an_odd_number_stays(count: int) -> None:
    images, shares = Mixing(AugmentationConfig(mixup=1.0), tiny_data.CLASSES, SEED)(IMAGES[:count], LABELS[:count], 0)
    assert torch.equal(images[-1], IMAGES[count - 1])
    assert torch.equal(shares[-1], functional.one_hot(LABELS[count - 1], tiny_data.CLASSES).float())
    assert count == 1 or not torch.equal(images[0], IMAGES[0])


def test_images_without_labels_are_mixed_and_stay_without() -> None:
    unknown = torch.full_like(LABELS, UNKNOWN)
    config = AugmentationConfig(mixup=1.0)
    without = mixing(replace(tiny_data.splits(), labelled=False), config, SEED)
    with_labels = mixing(tiny_data.splits(), config, SEED)
    assert without is not None
    assert with_labels is not None
    images, labels = without(IMAGES, unknown, 1)
    assert labels is unknown
    assert torch.equal(images, with_labels(IMAGES, LABELS, 1)[0])


def test_random_numbers_are_those_of_seed_and_step_and_the_global_state_stays() -> None:
    mix = Mixing(AugmentationConfig(mixup=1.0), tiny_data.CLASSES, SEED)
    before = torch.get_rng_state()
    found = [mix(IMAGES, LABELS, step)[0] for step in (0, 1, 0)]
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(found[0], found[2])
    assert not torch.equal(found[0], found[1])
    assert not torch.equal(found[0], Mixing(AugmentationConfig(mixup=1.0), tiny_data.CLASSES, 6)(IMAGES, LABELS, 0)[0])


def test_nothing_is_mixed_by_default() -> None:
    assert mixing(tiny_data.splits(), AugmentationConfig("randaugment", erasing=1.0), 0) is None


def test_cutmix_is_left_out_and_mixup_stays_where_labels_are_numbers(caplog: pytest.LogCaptureFixture) -> None:
    """A picture with a corner of another one has no length between both; their mean has the mean length."""
    numbers = torch.rand(8, 1, generator=torch.Generator().manual_seed(0))
    held = TensorEvaluationSet(IMAGES[:8], numbers.numpy(), range(8), "regression")
    splits = replace(tiny_data.splits(), validation=held, test=held, num_classes=1)
    assert mixing(splits, AugmentationConfig(cutmix=1.0), SEED) is None
    assert "cutmix is left out, since a picture with a part of another one has no number" in caplog.text
    mix = mixing(splits, AugmentationConfig(cutmix=1.0, mixup=1.0), SEED)
    assert mix is not None
    for step in STEPS:
        images, found = mix(IMAGES[:8], numbers, step)
        share = (images[0] - IMAGES[1]).norm() / (IMAGES[0] - IMAGES[1]).norm()
        assert torch.allclose(images[0], share * IMAGES[0] + (1 - share) * IMAGES[1], atol=1e-5)
        assert found[0].item() == pytest.approx((share * numbers[0] + (1 - share) * numbers[1]).item(), abs=1e-5)
    assert mixing(
        replace(splits, labelled=False), AugmentationConfig(cutmix=1.0), SEED
    )  # the teacher says what it sees


def test_cutmix_is_left_out_and_mixup_stays_where_signals_have_height_one(caplog: pytest.LogCaptureFixture) -> None:
    splits = replace(tiny_data.splits(), signal=Signal((3, 1, 16), (3, 16)))
    assert mixing(splits, AugmentationConfig(cutmix=1.0), SEED) is None
    assert "cutmix is left out, since signals of height 1 have no rectangle" in caplog.text
    mix = mixing(splits, AugmentationConfig(cutmix=1.0, mixup=1.0), SEED)
    assert mix is not None
    assert all(not torch.equal(mix(IMAGES[..., :1, :], LABELS, step)[0], IMAGES[..., :1, :]) for step in STEPS)
    assert mixing(replace(splits, signal=Signal((3, 2, 16), (3, 2, 16))), AugmentationConfig(cutmix=1.0), SEED)
