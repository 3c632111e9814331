"""The package's mAP is pycocotools', and the influences of pictures are what drawing them anew does."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
import torch
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from autotailor.task import average_precision as ap


def scene(seed: int, pictures: int = 40, crowds: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
    """Detections ``[n, 12, 6]`` near boxes ``[n, 6, 6]`` of three classes, some of them absent, twice or elsewhere."""
    random = np.random.default_rng(seed)
    corners, sides = random.uniform(0, 0.6, (pictures, 6, 2)), random.uniform(0.1, 0.4, (pictures, 6, 2))
    labels = random.integers(-1, 3, (pictures, 6, 1))
    wanted = np.concatenate([corners, corners + sides, labels, crowds * (random.random((pictures, 6, 1)) < 0.15)], 2)
    found = np.concatenate([wanted, wanted], 1)
    found[..., :4] += random.normal(0, 0.03, (pictures, 12, 4))
    found[..., 2:4] = np.maximum(found[..., 2:4], found[..., :2] + 0.01)
    found[..., 4] = random.random((pictures, 12))
    strange = random.random((pictures, 12)) < 0.2
    found[..., 5] = np.where(strange, random.integers(-1, 3, (pictures, 12)), np.tile(labels[..., 0], 2))
    found = np.take_along_axis(found, np.argsort(-found[..., 4:5], 1), 1)
    return torch.from_numpy(found), torch.from_numpy(wanted)


def by_pycocotools(found: np.ndarray, wanted: np.ndarray) -> float:
    boxes, answers = [], []
    for picture, (own, said) in enumerate(zip(wanted, found, strict=True)):
        for left, top, right, bottom, label, crowd in own[own[:, 4] >= 0]:
            where = {"id": len(boxes) + 1, "image_id": picture, "category_id": int(label), "iscrowd": int(crowd)}
            boxes.append(
                where | {"bbox": [left, top, right - left, bottom - top], "area": (right - left) * (bottom - top)}
            )
        for left, top, right, bottom, score, label in said[said[:, 5] >= 0]:
            answers.append([picture, left, top, right - left, bottom - top, score, label])
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        names = [{"id": label} for label in range(3)]
        truth.dataset = {"images": [{"id": n} for n in range(len(wanted))], "categories": names, "annotations": boxes}
        truth.createIndex()
        judge = COCOeval(truth, truth.loadRes(np.array(answers)), "bbox")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return float(judge.stats[0])


def kept(found: torch.Tensor, wanted: torch.Tensor) -> np.ndarray:
    return ap.rows(found, wanted, *ap.matched(found, wanted)).numpy()


@pytest.mark.parametrize("seed", range(4))
def test_map_is_that_of_pycocotools(seed: int) -> None:
    found, wanted = scene(seed)
    value, _ = ap.of_set(kept(found, wanted))
    assert 0.1 < value < 0.95
    assert value == pytest.approx(by_pycocotools(found.numpy(), wanted.numpy()), abs=1e-6)


def test_influences_of_pictures_are_those_of_drawing_them_anew() -> None:
    found, wanted = scene(7, pictures=150, crowds=False)
    whole = kept(found, wanted)
    value, influences = ap.of_set(whole)
    assert influences.mean() == pytest.approx(0, abs=1e-9)
    random = np.random.default_rng(0)
    drawn = [ap.of_set(whole[random.integers(len(whole), size=len(whole))])[0] for _ in range(200)]
    assert influences.std() / len(whole) ** 0.5 == pytest.approx(np.std(drawn), rel=0.15)
    without = [ap.of_set(np.delete(whole, i, 0))[0] for i in range(len(whole))]
    assert np.corrcoef(influences, value - np.array(without))[0, 1] > 0.9


def test_a_picture_alone_has_its_own_ap() -> None:
    box = torch.tensor([[0.1, 0.1, 0.5, 0.5, 0.0, 0.0]]).double()
    wrong, right = [0.6, 0.6, 0.9, 0.9, 0.9, 1.0], [0.1, 0.1, 0.5, 0.5, 0.8, 0.0]
    found = torch.tensor([[right, [0, 0, 0, 0, -1, -1]], [wrong, right], [wrong, wrong]]).double()
    right_, ignored = ap.matched(found, box.expand(3, 1, 6))
    values = ap.of_pictures(right_, ignored | (found[..., 5] < 0)[..., None], torch.tensor([1, 1, 1]))
    assert values.tolist() == [1.0, 0.5, 0.0]
