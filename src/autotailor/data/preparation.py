"""What makes a network's input of a picture, and what its outputs are called: for people without autotailor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Signal:
    """How a signal of an array becomes an image: its numbers are divided by ``scale``, its channels are put first.

    Attributes:
        shape: channels, height and width as the network reads them; the height of a series is 1.
        file: shape of a signal as its array has it.
        layout: whether the channels of a signal stand ``first`` or ``last`` in its array.
        scale: what its numbers are divided by first.
    """

    shape: tuple[int, ...]
    file: tuple[int, ...]
    layout: str = "first"
    scale: float = 1.0


@dataclass(frozen=True)
class Preparation:
    """How a picture becomes an image of validation and test.

    The shorter side is scaled to round(resolution / crop) pixels, the centre of resolution times resolution pixels is
    cut out, and each channel (red, green, blue; 0 to 1) becomes (pixel - mean) / std. A SubNet of a smaller resolution
    gets that image scaled down, antialiased bilinear. Where crop is 0, the whole picture is scaled to the square.

    Attributes:
        resolution: side of the images of the data, pixels.
        mean, std: for each channel.
        crop: share of the shorter side that is kept; 0 where the whole picture is.
        interpolation: ``bilinear`` or ``bicubic``, of the first change of size; antialiased.
        background: what transparent pixels stand over, ``white`` or ``black``; ``drop`` takes their stored colours.
        classes: names of the outputs, in their order; empty where the data have none.
        signal: how a signal of an array, which is no picture, becomes an image; None for pictures.
    """

    resolution: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    crop: float = 1.0
    interpolation: str = "bilinear"
    classes: tuple[str, ...] = ()
    background: str = "white"
    signal: Signal | None = None

    @classmethod
    def read(cls, section: Mapping[str, Any]) -> Preparation:
        """What ``dataclasses.asdict`` made of a preparation, also as JSON."""
        signal = section.get("signal")
        return cls(**{**section, "signal": Signal(**signal) if signal else None})


@dataclass(frozen=True)
class Judgement:
    """What one network makes of pictures with transparency.

    Attributes:
        looked_at: number of pictures, spread evenly over the set.
        pictures: number of those whose image depends on the background.
        accuracy: percent, over each background; empty where the pictures have no labels of their own.
        differs: whether another background than the chosen one changes the accuracy much, and beyond chance.
        better: of the backgrounds whose accuracy is so much higher, the one with the highest; "" where there is none.
    """

    looked_at: int
    pictures: int
    accuracy: Mapping[str, float] = field(default_factory=dict)
    differs: bool = False
    better: str = ""

    @property
    def sentence(self) -> str:
        """The accuracies in words, with what to do about them; "" where they do not differ much."""
        if not self.differs:
            return ""
        shown = {"drop": "with the stored colours (drop)"}
        shares = ", ".join(f"{value:.1f} % {shown.get(name, f'over {name}')}" for name, value in self.accuracy.items())
        remedy = f"set data.background to {self.better}" if self.better else "no other is clearly better"
        return f"On pictures with transparent pixels the network is right on {shares}: {remedy}"
