"""The task of maps of classes: mIoU of a set, what a picture adds to it, and what single pictures are worth."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

import autotailor
from autotailor import accuracy, task
from autotailor.data.labels import IGNORED
from autotailor.data.splits import DataSplits, TensorEvaluationSet
from autotailor.finetuning import FinetuneConfig, TrainingError
from autotailor.finetuning.loss import make_loss
from autotailor.finetuning.pretraining import check_outputs
from autotailor.task.interface import Asked, Lesson
from autotailor.task.tasks import segmentation
from autotailor.task.tasks.segmentation import Segmentation
from returning import UNet

JUDGE = Segmentation()
CLASSES = 4


def drawn(count: int = 6, side: int = 8, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Maps of logits of half the targets' sides, and targets of which some pixels do not count."""
    random = torch.Generator().manual_seed(seed)
    targets = torch.randint(CLASSES, (count, side, side), generator=random)
    coarse = functional.one_hot(targets[:, ::2, ::2], CLASSES).permute(0, 3, 1, 2)
    maps = 2 * coarse + torch.randn(coarse.shape, generator=random)
    targets[torch.rand(targets.shape, generator=random) < 0.1] = IGNORED
    return maps, targets


def said(maps: torch.Tensor, side: int = 8) -> np.ndarray:
    """The answer at each pixel."""
    return functional.interpolate(maps, [side, side], mode="bilinear").argmax(1).numpy()


def quotients(answers: np.ndarray, targets: np.ndarray) -> dict[int, float]:
    """IoU of each class that occurs, by a loop over the pixels."""
    found, either = dict.fromkeys(range(CLASSES), 0), dict.fromkeys(range(CLASSES), 0)
    for answer, target in zip(answers.ravel().tolist(), targets.ravel().tolist(), strict=True):
        if target == IGNORED:
            continue
        found[target] += answer == target
        for each in {answer, target}:
            either[each] += 1
    return {each: found[each] / either[each] for each in range(CLASSES) if either[each]}


def test_the_score_is_the_mean_over_classes_of_pixels_found_in_all_pictures_together() -> None:
    maps, targets = drawn()
    wanted = np.mean(list(quotients(said(maps), targets.numpy()).values()))
    shares = JUDGE.shares(JUDGE.judge(maps, targets).kept.numpy())
    assert 0.2 < wanted < 0.9
    assert shares.mean() == pytest.approx(wanted, abs=1e-12)
    assert JUDGE.total(shares, np.arange(6))[0] == pytest.approx(100 * wanted)


def test_the_value_of_a_picture_is_its_mean_over_the_classes_that_it_shows() -> None:
    maps, targets = drawn()
    targets[0, :, :4], targets[0, :, 4:] = 1, 2
    for picture, value in enumerate(JUDGE.judge(maps, targets).values.tolist()):
        own = targets[picture].numpy()
        found = quotients(said(maps)[picture], own)
        wanted = np.mean([found[each] for each in np.unique(own[own != IGNORED]).tolist()])
        assert value == pytest.approx(wanted, abs=1e-6)


def test_the_loss_of_a_picture_is_the_mean_cross_entropy_of_the_pixels_that_count() -> None:
    maps, targets = drawn()
    large = functional.interpolate(maps, [8, 8], mode="bilinear")
    for picture, loss in enumerate(JUDGE.judge(maps, targets).losses.tolist()):
        wanted = functional.cross_entropy(large[picture][None], targets[picture][None], ignore_index=IGNORED)
        assert loss == pytest.approx(wanted.item(), rel=1e-5)


def test_the_error_is_that_of_drawing_base_pictures_anew() -> None:
    maps, targets = drawn(count=90, seed=3)
    maps[:30] *= -1  # pictures of which the network knows less
    groups = np.arange(90) // 2
    kept = JUDGE.judge(maps, targets).kept.numpy()
    _, error = JUDGE.total(JUDGE.shares(kept), groups)
    random, scores = np.random.default_rng(0), []
    for _ in range(2000):
        chosen = random.integers(0, 45, 45)
        scores.append(JUDGE.shares(kept[np.concatenate([2 * chosen, 2 * chosen + 1])]).mean())
    assert error == pytest.approx(100 * np.std(scores), rel=0.1)


def test_probabilities_and_logits_are_worth_the_same() -> None:
    maps, targets = drawn()
    logits, shares, logarithms = (JUDGE.judge(each, targets) for each in (maps, maps.softmax(1), maps.log_softmax(1)))
    for other in (shares, logarithms):
        assert torch.equal(other.kept, logits.kept)
        assert torch.equal(other.values, logits.values)
        assert torch.allclose(other.losses, logits.losses, atol=1e-5)
    lesson = Lesson(weight=0.5)
    found, wanted = (JUDGE.loss(each, targets, maps.flip(1), lesson) for each in (maps.softmax(1), maps))
    assert found.item() == pytest.approx(wanted.item(), rel=1e-5)


def test_large_maps_are_judged_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    maps, targets = drawn()
    whole = JUDGE.judge(maps, targets)
    monkeypatch.setattr(segmentation, "MOST", 2 * CLASSES * 64)
    parts = JUDGE.judge(maps, targets)
    assert torch.equal(parts.kept, whole.kept)
    assert torch.equal(parts.losses, whole.losses)


def test_what_is_no_number_is_no_answer() -> None:
    maps, targets = drawn()
    maps[2] = float("nan")
    found = JUDGE.judge(maps, targets)
    assert found.values[2] == 0
    assert found.losses.isfinite().all()
    assert found.kept[2, 0].sum() == 0


def test_a_picture_without_a_pixel_that_counts_changes_nothing() -> None:
    maps, targets = drawn()
    before = JUDGE.shares(JUDGE.judge(maps, targets).kept.numpy())
    more = torch.cat([targets, torch.full((1, 8, 8), IGNORED)])
    found = JUDGE.judge(torch.cat([maps, maps[:1]]), more)
    assert (found.values[-1], found.losses[-1]) == (1.0, 0.0)
    assert JUDGE.shares(found.kept.numpy()).mean() == pytest.approx(before.mean())
    learnt = maps[:1].clone().requires_grad_()
    loss = JUDGE.loss(learnt, more[-1:], None, Lesson())
    loss.backward()
    assert (loss.item(), learnt.grad.abs().sum().item()) == (0.0, 0.0)


def test_the_first_of_several_outputs_is_the_map() -> None:
    maps, targets = drawn()
    both = maps, maps.flip(1)
    assert torch.equal(JUDGE.judge(both, targets).kept, JUDGE.judge(maps, targets).kept)
    assert JUDGE.misfit((maps[:2], maps[:2, :1]), CLASSES, "data notes") == ""


def test_training_minimises_cross_entropy_and_divergence_from_the_teacher_of_each_pixel() -> None:
    maps, targets = drawn()
    teacher = functional.interpolate(maps.flip(0), [2, 2], mode="bilinear")
    small = functional.interpolate(maps, [2, 2], mode="bilinear")
    large = functional.interpolate(maps, [8, 8], mode="bilinear")
    hard = functional.cross_entropy(large, targets, ignore_index=IGNORED, label_smoothing=0.1)
    wanted = (teacher / 2).softmax(1)
    soft = (wanted * ((teacher / 2).log_softmax(1) - (small / 2).log_softmax(1))).sum(1).mean()
    lesson = Lesson(weight=0.3, temperature=2.0, smoothing=0.1)
    assert JUDGE.loss(maps, targets, None, lesson).item() == pytest.approx(hard.item(), rel=1e-5)
    found = JUDGE.loss(maps, targets, teacher, lesson)
    assert found.item() == pytest.approx((0.7 * hard + 0.3 * 4 * soft).item(), rel=1e-5)
    unknown = torch.full((len(maps),), -1)
    alone = JUDGE.loss(maps, unknown, teacher, Lesson(weight=1.0, temperature=2.0))
    assert alone.item() == pytest.approx(4 * soft.item(), rel=1e-5)


def test_chance_says_the_commonest_class_everywhere() -> None:
    _, targets = drawn()
    known = targets.numpy().astype(np.uint8)
    commonest = np.bincount(known[known != IGNORED]).argmax()
    blind = functional.one_hot(torch.full((6, 1, 1), commonest), CLASSES).permute(0, 3, 1, 2).float()
    assert JUDGE.chance(known) == pytest.approx(JUDGE.judge(blind, targets).values.double().mean().item())


def test_a_network_that_knows_nothing_is_doubted() -> None:
    maps, targets = drawn(count=20)
    images = TensorEvaluationSet(torch.zeros(20, 3, 8, 8), targets.byte().numpy(), range(20), "segmentation")
    splits = DataSplits("notes", CLASSES, 8, None, images, images, (0.5,) * 3, (0.25,) * 3)  # type: ignore[arg-type]
    assert task.of(splits).name == "segmentation"
    chance = JUDGE.chance(images.labels)
    for values, word in (
        (JUDGE.judge(maps, targets).values.double().numpy(), ""),
        (np.full(20, chance - 0.01), "picture IoU"),
    ):
        asked = Asked(values, images.labels, lambda _: images.labels)
        assert word in (doubt := JUDGE.doubt(asked, splits, 0, "the network"))
        assert bool(doubt) == bool(word)


@pytest.mark.parametrize(
    ("shape", "says"), [((2, CLASSES), r"gives \[2, 4\]"), ((2, 3, 8, 8), "expected a map .2, 4,")]
)
def test_other_outputs_are_refused(shape: tuple[int, ...], says: str) -> None:
    assert re.search(says, JUDGE.misfit(torch.zeros(shape), CLASSES, "data notes"))


def test_the_users_loss_is_tried_with_maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "maps_loss.py").write_text(
        "def loss(logits, labels, teacher, config):\n"
        "    assert logits.ndim == 4 and logits.shape[2:] == labels.shape[1:] == teacher.shape[2:]\n"
        "    return (logits - teacher).square().mean()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    config = FinetuneConfig(epochs=1, loss="maps_loss:loss")
    make_loss(config, JUDGE, CLASSES, independent=False)
    with pytest.raises(TrainingError, match="failed"):
        make_loss(config, task.find("classification"), CLASSES, independent=False)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 5), st.integers(1, 6), st.integers(2, 6), st.integers(0, 10**6))
def test_what_holds_of_all_maps(count: int, side: int, classes: int, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    maps = torch.randn(count, classes, side, side, generator=random)
    targets = torch.randint(classes, (count, 2 * side, 2 * side), generator=random)
    targets[torch.rand(targets.shape, generator=random) < 0.3] = IGNORED
    found = JUDGE.judge(maps, targets)
    assert ((found.values >= 0) & (found.values <= 1)).all()
    assert 0 <= JUDGE.shares(found.kept.numpy()).mean() <= 1
    assert (found.kept[:, 0] <= found.kept[:, 1]).all()
    right = JUDGE.judge(maps, functional.interpolate(maps, [side, side], mode="bilinear").argmax(1))
    assert (right.values == 1).all()
    assert JUDGE.shares(right.kept.numpy()).mean() == 1
    turned = JUDGE.judge(maps.flip(3), targets.flip(2))
    assert torch.equal(turned.kept, found.kept)


def test_pictures_without_masks_get_those_of_the_original_network() -> None:
    torch.manual_seed(0)
    net = autotailor.compile(UNet((8, 16)).eval(), resolution=16)
    images = TensorEvaluationSet(torch.randn(6, 3, 16, 16), [-1] * 6, range(6), "segmentation")
    splits = DataSplits("notes", 0, 16, None, images, images, (0,) * 3, (1,) * 3, labelled=False)  # type: ignore[arg-type]
    known = accuracy.with_labels(splits, net)
    assert (known.validation.labels.dtype, known.validation.labels.shape) == (np.uint8, (6, 16, 16))
    assert task.score_of(known).name == "mIoU with the original network"
    assert not known.has_maps
    module = net.module().eval()
    found = accuracy.evaluate(module, net.largest(), known.test, None)
    assert task.of(known).shares(found.kept).mean() > 0.999
    others = (known.test.labels + 1) % 5
    assert JUDGE.shares(JUDGE.judge(module(known_images(known)), torch.from_numpy(others)).kept.numpy()).mean() < 0.5


def known_images(data: DataSplits) -> torch.Tensor:
    """All test images."""
    return torch.cat([images for images, _ in data.test.batches(8)])


class Several(torch.nn.Module):
    """Returns a map, and another one of an auxiliary head."""

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, ...]:
        maps = images.repeat(1, 2, 1, 1)[:, :CLASSES, ::2, ::2]
        return maps, maps[:, :1]


def test_a_network_with_an_auxiliary_head_passes_the_check_before_training() -> None:
    check_outputs(Several(), JUDGE, CLASSES, (3, 8, 8), "data notes")
    with pytest.raises(TrainingError, match=r"Several gives \[2, 4, 4, 4\] for 2 images, expected a map \[2, 7,"):
        check_outputs(Several(), JUDGE, 7, (3, 8, 8), "data notes")
    with pytest.raises(TrainingError, match="Several returns a tuple; expected one tensor of logits"):
        check_outputs(Several(), task.find("classification"), CLASSES, (3, 8, 8), "data notes")
