"""Words that ``espeak-ng`` speaks in the voices that it has, in noise, and a residual network for their spectrograms.

A voice is in one part of the data alone. Each take has an accent, a speed, a pitch, a place in its second, and noise of
its own. Debian's package ``espeak-ng`` must be installed.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import signal
from scipy.io import wavfile
from torch import nn

from pipelines import series

Array = npt.NDArray[np.float64]
WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("yes", "no", "on", "off", "up", "down", "left", "right", "go", "stop"),
)
ACCENTS = ("en-us", "en-gb", "en-gb-scotland", "en-gb-x-rp", "en-gb-x-gbclan", "en-gb-x-gbcwmd", "en-029")
TAKES = 3  # of each word by each voice
RATE = 8000  # samples of each second
BANDS, FRAMES = 32, 64
GIVEN = "words.npz"
SIGNAL = (1, BANDS, FRAMES)
EPOCHS = 8
INSPECT: tuple[str, ...] = ()
OVERRIDES = ("data.shift=4",)


def voices() -> list[str]:
    """The variants of voices that are installed; whispers are left out."""
    said = subprocess.run(["espeak-ng", "--voices=variant"], check=True, capture_output=True, text=True).stdout
    found = {word.removeprefix("!v/") for line in said.splitlines() for word in line.split() if word.startswith("!v/")}
    return sorted(voice for voice in found if "whisper" not in voice)


def spoken(word: str, voice: str, random: np.random.Generator) -> Array:
    """One take: a second of sound ``[RATE]``, the word at a random place, in noise that is up to as loud."""
    speed, pitch = random.integers(110, 230), random.integers(10, 90)
    accent = random.choice(ACCENTS)
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        order = ["espeak-ng", "-v", f"{accent}+{voice}", "-s", str(speed), "-p", str(pitch), "-w", file.name, word]
        subprocess.run(order, check=True)
        rate, sound = wavfile.read(file.name)
    sound = signal.resample_poly(sound / 2**15, RATE, rate)
    loud = np.flatnonzero(np.abs(sound) > 0.02 * np.abs(sound).max())
    sound = sound[loud[0] : loud[-1]][: RATE - 400]
    slope = (1 + np.arange(RATE // 2 + 1)) ** random.uniform(0, 0.7)
    noise = np.fft.irfft(np.fft.rfft(random.normal(size=RATE)) / slope)
    level = 10 ** (-random.uniform(0, 20) / 20)  # of the noise over the word
    found = noise * (level * sound.std() / noise.std())
    first = random.integers(RATE - len(sound))
    found[first : first + len(sound)] += sound
    return found / np.abs(found).max()


def spectrogram(sound: Array) -> Array:
    """Logarithms of energies ``[1, BANDS, FRAMES]`` in bands that are equally wide on the mel scale."""
    _, _, power = signal.spectrogram(sound, RATE, nperseg=256, noverlap=256 - 121, mode="psd")
    mel = np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), BANDS + 2)
    edges = 700 * (10 ** (mel / 2595) - 1) * 256 / RATE
    bins = np.arange(len(power))[None]
    low, middle, high = (edges[i : BANDS + i, None] for i in range(3))
    shares = np.clip(np.minimum((bins - low) / (middle - low), (high - bins) / (high - middle)), 0, None)
    found: Array = np.log(shares @ power + 1e-9)[None, :, :FRAMES]
    return found


def write(folder: Path, seed: int = 0, most: int = 0) -> Path:
    """Writes ``words/VOICE/WORD_TAKE.wav`` and the arrays of their spectrograms.

    Args:
        folder: of the files.
        seed: of all that is random.
        most: voices at most; 0 for all.
    """
    x, y, groups = [], [], []
    for number, voice in enumerate(voices()[: most or None]):
        random = np.random.default_rng([seed, number])
        (folder / "words" / voice).mkdir(parents=True)
        for word in WORDS:
            for take in range(TAKES):
                sound = (2**15 * 0.9 * spoken(word, voice, random)).astype(np.int16)
                wavfile.write(folder / "words" / voice / f"{word}_{take}.wav", RATE, sound)
                x.append(spectrogram(sound / 2**15))
                y.append(word)
                groups.append(voice)
    return series.save(folder / GIVEN, x, y, groups, seed)


def network() -> nn.Module:
    """Spectrograms ``[n, 1, BANDS, FRAMES]`` to logits of the words."""
    return series.residual(nn.Conv2d, 1, len(WORDS), (16, 32, 64), 2, 3)


def train(made: nn.Module, folder: Path, seed: int) -> int:
    """The owner's training; returns how many spectrograms the network has seen."""
    return series.fit(made, folder / GIVEN, EPOCHS, 6, seed)
