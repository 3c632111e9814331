"""Windows of a simulated sensor of acceleration and turning on a moving person, and a residual network along time.

The sensor is accelerated along a path and turns about its axes, both as sums of harmonics of the motion's pace, with
impacts where feet or tools hit. It feels acceleration and gravity in its own, turned coordinates, and the rate of
turning. A person has a size, a pace, and a way to carry the sensor, and is in one part of the data alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation
from torch import nn

from pipelines import series

Array = npt.NDArray[np.float64]


class Motion(NamedTuple):
    """How one motion moves the sensor.

    Attributes:
        pace: periods in a second.
        path: peak acceleration in m/s² ahead, sideways and up, at half the pace, at the pace, and at twice the pace.
        turn: the same of the turning, in rad/s about these axes.
        impact: peak of an impact once in a period, m/s².
        lag: of what is sideways behind what goes up, in periods.
    """

    pace: float
    path: tuple[tuple[float, float, float], ...]
    turn: tuple[tuple[float, float, float], ...]
    impact: float
    lag: float = 0.25


STILL = (0.0, 0.0, 0.0)
MOTIONS = {
    "walking": Motion(1.9, ((0, 1.2, 0), (1.5, 0, 2.5), (0.5, 0, 0.8)), ((0.5, 0, 0.6), (0, 0.5, 0), (0, 0.2, 0)), 2),
    "limping": Motion(1.7, ((0.6, 1.2, 1), (1.3, 0, 2), (0.5, 0, 0.8)), ((0.6, 0, 0.6), (0, 0.5, 0), (0, 0.2, 0)), 2),
    "running": Motion(2.5, ((0, 1.8, 0), (2.5, 0, 6), (0.8, 0, 1.5)), ((0.9, 0, 1), (0, 0.9, 0), (0, 0.3, 0)), 6),
    "climbing": Motion(1.7, ((0, 1.4, 0), (1.9, 0, 2.2), (0.3, 0, 0.5)), ((0.6, 0, 0.5), (0, 0.8, 0), (0, 0.3, 0)), 1),
    "descending": Motion(1.9, ((0, 1.3, 0), (1.2, 0, 2.8), (0.6, 0, 1)), ((0.5, 0, 0.5), (0, 0.6, 0), (0, 0.2, 0)), 3),
    "cycling": Motion(1.3, ((0, 0.4, 0), (1.5, 0.4, 1.5), STILL), ((0.3, 0, 0.2), (0, 1.6, 0), (0, 0.1, 0)), 0.2),
    "rowing": Motion(0.7, ((0.2, 0, 0), (2.5, 0.2, 0.8), (0.8, 0, 0.3)), ((0, 0.1, 0), (0, 0.9, 0), (0, 0.3, 0)), 0.6),
    "stirring": Motion(1.5, (STILL, (1.6, 1.6, 0.2), (0.2, 0.2, 0)), (STILL, (0.4, 0.4, 0.5), STILL), 0.1),
    "wiping": Motion(1.5, (STILL, (0.4, 2.4, 0.2), (0, 0.4, 0)), (STILL, (0.2, 0.1, 0.9), (0, 0, 0.2)), 0.1, 0),
    "hammering": Motion(1.8, (STILL, (1.5, 0.3, 2.5), (0.5, 0, 1)), (STILL, (0.1, 1, 0), (0, 0.4, 0)), 5),
}  # fmt: skip
PERSONS, WINDOWS = 250, 4  # windows of each motion by each person
RATE, LENGTH = 50, 128  # samples of each second, and of a window
GIVEN = "windows.npz"
SIGNAL = (6, LENGTH)
EPOCHS = 8
INSPECT: tuple[str, ...] = ()
OVERRIDES = ("data.shift=8",)


def window(motion: Motion, size: float, pace: float, carried: Rotation, random: np.random.Generator) -> Array:
    """Acceleration (m/s²) and turning (rad/s) of one window, ``[6, LENGTH]``.

    Args:
        motion: of the person.
        size: of the person's movements, relative to the usual ones.
        pace: relative to the usual one.
        carried: the coordinates of the sensor in those of the person.
        random: of the window.
    """
    times = np.arange(LENGTH) / RATE
    drift = np.cumsum(random.normal(0, 0.02, LENGTH)) / 4
    phase = motion.pace * pace * random.uniform(0.9, 1.1) * times + drift + random.uniform(0, 2)
    lag = np.array([0.0, motion.lag, 0.0])[:, None] + random.normal(0, 0.03, (3, 1))

    def harmonics(peaks: tuple[tuple[float, float, float], ...]) -> Array:
        found = np.zeros((3, LENGTH))
        for order, peak in zip((0.5, 1, 2), peaks, strict=True):
            own = size * random.lognormal(0, 0.25, (3, 1)) * np.array(peak)[:, None]
            found += own * np.sin(2 * np.pi * order * (phase + lag) + random.normal(0, 0.3, (3, 1)))
        return found

    moved, rates = harmonics(motion.path), harmonics(motion.turn)
    since = np.mod(phase + 0.3, 1.0) / (motion.pace * pace)  # seconds since the impact
    moved += np.array([0.3, 0.1, 1.0])[:, None] * motion.impact * size * np.exp(-since / 0.03) * np.cos(60 * since)
    turned = Rotation.from_rotvec(np.cumsum(rates, axis=1).T / RATE)
    felt = (carried.inv() * turned.inv()).apply((moved + np.array([0, 0, 9.81])[:, None]).T).T
    noise = np.concatenate([random.normal(0, 0.6, (3, LENGTH)), random.normal(0, 0.2, (3, LENGTH))])
    found: Array = np.concatenate([felt, carried.inv().apply(rates.T).T]) + noise
    return found


def write(folder: Path, seed: int = 0, most: int = 0) -> Path:
    """Writes the windows of all persons as arrays; ``most`` persons at most, where it is not 0."""
    x, y, groups = [], [], []
    for person in range(most or PERSONS):
        random = np.random.default_rng([seed, person])
        size, pace = random.lognormal(0, 0.25), random.lognormal(0, 0.1)
        worn = Rotation.from_rotvec(random.normal(0, 0.5, 3))
        for name, motion in MOTIONS.items():
            for _ in range(WINDOWS):
                carried = Rotation.from_rotvec(random.normal(0, 0.2, 3)) * worn
                x.append(window(motion, size, pace, carried, random))
                y.append(name)
                groups.append(f"person {person:03d}")
    return series.save(folder / GIVEN, x, y, groups, seed)


def network() -> nn.Module:
    """Windows ``[n, 6, LENGTH]`` to logits of the motions."""
    return series.residual(nn.Conv1d, 6, len(MOTIONS), (16, 32, 64), 2, 5)


def train(made: nn.Module, folder: Path, seed: int) -> int:
    """The owner's training; returns how many windows the network has seen."""
    return series.fit(made, folder / GIVEN, EPOCHS, 12, seed)
