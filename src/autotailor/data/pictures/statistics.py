"""Statistics of training pictures: mean and standard deviation of each channel, and the pictures' size."""

from __future__ import annotations

import statistics
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from autotailor.data.files.contents import cores
from autotailor.data.pictures.stream import PictureStream, centre
from autotailor.data.progress import progress

SAMPLE = 2000  # gives the mean a standard error of about half a percent of the pixels' range


@dataclass(frozen=True)
class PictureStatistics:
    """Statistics of the training pictures, cropped as evaluation crops them.

    Attributes:
        mean, std: of each channel, pixels between 0 and 1.
        side: median of the pictures' shorter sides before the crop, pixels.
        measured: number of pictures that were measured.
        pictures: number of all training pictures.
    """

    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    side: float
    measured: int
    pictures: int


def measure(stream: PictureStream, sample: int = SAMPLE, what: str = "mean and deviation") -> PictureStatistics:
    """Statistics of at most ``sample`` training pictures, drawn by the seed of the data.

    Args:
        stream: of the training pictures.
        sample: pictures that are opened at most.
        what: is measured, for the progress.

    Raises:
        DataError: a picture cannot be read.
    """
    count = min(sample, len(stream))
    ids = np.random.default_rng(stream.config.seed).permutation(len(stream))[:count]

    def look(index: int) -> tuple[list[float], list[float], int]:
        image = stream.pictures.open(index)
        pixels = centre(stream.config, image).double()
        return pixels.mean((1, 2)).tolist(), pixels.square().mean((1, 2)).tolist(), min(image.size)

    with progress(f"measuring {what} of {stream.config.name}", count) as advance:
        seen = []
        with ThreadPoolExecutor(cores()) as pool:
            for result in pool.map(look, map(int, ids)):
                seen.append(result)
                advance()
    mean = np.mean([means for means, _, _ in seen], axis=0)
    std = np.sqrt(np.mean([squares for _, squares, _ in seen], axis=0) - mean**2)
    red, green, blue = (round(float(value), 4) for value in mean)
    deviations = [max(0.001, round(float(value), 4)) for value in std]  # 0 where all pictures have one colour
    return PictureStatistics(
        (red, green, blue),
        (deviations[0], deviations[1], deviations[2]),
        statistics.median(side for _, _, side in seen),
        count,
        len(stream),
    )
