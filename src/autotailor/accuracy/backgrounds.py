"""How right a network is on pictures with transparency, over each background that they can stand over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from autotailor.accuracy.evaluation import correctness
from autotailor.data.excerpt import share_of, spread
from autotailor.data.labels import UNKNOWN
from autotailor.data.pictures.config import BACKGROUNDS
from autotailor.data.preparation import Judgement
from autotailor.data.splits import EvaluationSet
from autotailor.statistics import accuracy, accuracy_drop

LOOKED_AT = 2000  # pictures, for transparency
JUDGED = 256  # pictures with transparency, on which networks are compared
MUCH = 5.0  # points
READ = 64  # pictures that are compared at once


@dataclass(frozen=True, eq=False)
class Transparent:
    """The pictures of an evaluation set whose image depends on the background.

    Attributes:
        looked_at: number of pictures, spread evenly over the set.
        pictures: number of those that depend on the background.
        chosen: the background of the set.
        over: at most ``JUDGED`` of them over each background; empty where they have no labels of their own.
    """

    looked_at: int
    pictures: int
    chosen: str
    over: Mapping[str, EvaluationSet] = field(default_factory=dict)


def find_transparent(images: EvaluationSet, background: str, *, labelled: bool = True) -> Transparent | None:
    """The pictures of an evaluation set whose image depends on the background; None where there are none.

    Args:
        images: the evaluation set; the background of sets that are no picture files cannot be changed.
        background: of the set.
        labelled: whether the labels are the pictures' own. The answers of a network, which stand for labels, were given
            over one background.
    """
    sample = share_of(images, LOOKED_AT)
    opened = {name: each for name in ("white", "black") if (each := sample.over(name)) is not None}
    if len(opened) < 2:
        return None
    white, black = (each.batches(READ) for each in opened.values())
    differ = [(one != other).flatten(1).any(1) for (one, _), (other, _) in zip(white, black, strict=True)]
    positions = torch.cat(differ).nonzero()[:, 0].numpy()
    if not len(positions):
        return None
    is_judged = labelled and not (sample.labels == UNKNOWN).any()
    judged = positions[spread(len(positions), JUDGED)]
    every = {name: opened.get(name) or sample.over(name) for name in BACKGROUNDS if is_judged}
    over = {name: each.part(judged) for name, each in every.items() if each is not None}
    return Transparent(len(sample), len(positions), background, over)


def judge(network: nn.Module, pictures: Transparent, resolution: int = 0) -> Judgement:
    """The accuracy of a network on pictures with transparency, over each background.

    Args:
        network: images to logits; it is put into evaluation mode.
        pictures: the pictures.
        resolution: side to which images are resized, in pixels; 0 leaves their size.
    """
    right = {name: correctness(network, images, resolution) for name, images in pictures.over.items()}
    clear = {}
    for name, images in pictures.over.items():
        drop, error = accuracy_drop(right[pictures.chosen], right[name], images.groups)
        if abs(drop) >= MUCH and abs(drop) > 2 * np.nan_to_num(error, nan=np.inf):
            clear[name] = drop
    shares = {name: round(accuracy(own, pictures.over[name].groups)[0], 1) for name, own in right.items()}
    better = min((name for name, drop in clear.items() if drop < 0), key=clear.__getitem__, default="")
    return Judgement(pictures.looked_at, pictures.pictures, shares, bool(clear), better)
