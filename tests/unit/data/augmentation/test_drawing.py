"""Random numbers of one thread alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torchvision.transforms import v2

from autotailor.data.augmentation.drawing import drawing
from autotailor.data.seeding import generator


def drawn(position: int) -> torch.Tensor:
    """What one thread draws for an image, by all functions that transforms draw by."""
    with drawing(7, position):
        beta = torch.distributions.Beta(torch.tensor([0.3]), torch.tensor([0.3])).sample()
        numbers = [torch.rand(2), torch.randint(9, (2,)).float(), torch.randperm(4).float(), torch.empty(2).uniform_()]
        return torch.cat([*numbers, torch.empty(2).normal_(), torch.multinomial(torch.ones(5), 2).float(), beta])


def test_numbers_are_those_of_the_words_in_any_thread_and_the_global_state_stays() -> None:
    before = torch.get_rng_state()
    alone = [drawn(position) for position in range(200)]
    with ThreadPoolExecutor(4) as pool:
        side_by_side = list(pool.map(drawn, range(200)))
    assert all(torch.equal(one, other) for one, other in zip(alone, side_by_side, strict=True))
    assert not torch.equal(alone[0], alone[1])
    assert torch.equal(before, torch.get_rng_state())


def test_outside_of_the_block_numbers_are_drawn_as_before() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        expected = torch.rand(3)
        torch.manual_seed(0)
        drawn(0)
        assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    "transform",
    [
        v2.RandAugment(3),
        v2.TrivialAugmentWide(),
        v2.RandomErasing(p=0.5),
        v2.RandomErasing(p=0.5, value="random"),
        v2.RandomChoice([v2.MixUp(alpha=0.4, num_classes=3), v2.CutMix(alpha=0.4, num_classes=3)]),
    ],
    ids=lambda transform: type(transform).__name__,
)
def test_torchvisions_transforms_draw_what_they_draw_from_a_global_generator_of_that_state(
    transform: v2.Transform,
) -> None:
    images = torch.randint(0, 256, (4, 3, 24, 24), dtype=torch.uint8, generator=generator(1)).float() / 255
    inputs = (images, torch.tensor([0, 1, 2, 0])) if isinstance(transform, v2.RandomChoice) else (images[0],)
    before = torch.get_rng_state()
    for word in range(20):
        with drawing(word):
            ours = transform(*inputs)
        assert torch.equal(before, torch.get_rng_state())
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(generator(word).get_state())
            theirs = transform(*inputs)
        for one, other in zip(ours, theirs, strict=True):
            assert torch.equal(one, other)
