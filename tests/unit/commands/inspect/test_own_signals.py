"""``inspect --data`` for signals: what it writes, and what does not fit a network."""

from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import yaml
from scipy.io import wavfile

from autotailor.agreement import AgreementError
from autotailor.commands.inspect.own_signals import OwnSignals, is_signals, read_own_signals

IMAGE = (1, 6, 1, 20)


def written(path: Path, turned: bool = False, labels: bool = True) -> OwnSignals:
    x = np.random.default_rng(0).normal(size=(60, 6, 20)).astype(np.float32)
    y = {"y": np.array(["down", "up", "wide"])[np.arange(60) % 3]} if labels else {}
    np.savez(path, x=x.transpose(0, 2, 1) if turned else x, **y)
    return read_own_signals(path, [0.0] * 6, [1.0] * 6)


def section(own: OwnSignals) -> dict[str, object]:
    found: dict[str, object] = yaml.safe_load("\n".join(own.lines()))["data"]
    return found


@pytest.mark.parametrize("turned", [False, True], ids=["first", "last"])
def test_the_layout_is_that_with_which_signals_fit_the_network(turned: bool, tmp_path: Path) -> None:
    own = written(tmp_path / "my windows.npz", turned).for_network("mine.onnx", 3, ["y"], [IMAGE])
    found = section(own)
    assert found["layout"] == ("last" if turned else "first")
    assert found["name"] == "my_windows"
    assert found["mean"] == [0.0] * 6
    assert "0 down" in "\n".join(own.lines())
    assert "train 48, val 6, test 6 signals, each [" in own.summary()[0]


def test_signals_without_labels_are_taught_by_the_network(tmp_path: Path) -> None:
    own = written(tmp_path / "a.npz", labels=False).for_network("mine.onnx", 3, ["y"], [IMAGE])
    assert section(own)["labels"] is False


def test_what_does_not_fit_is_refused_with_the_remedy(tmp_path: Path) -> None:
    own = written(tmp_path / "a.npz")
    with pytest.raises(
        AgreementError, match=r"takes \[1, 6, 1, 64\], the signals .* have the shape \[6, 20\]: cut them"
    ):
        own.for_network("mine.onnx", 3, ["y"], [(1, 6, 1, 64)])
    with pytest.raises(AgreementError, match=r"has 4 outputs, the data .* have 3 classes"):
        own.for_network("mine.onnx", 4, ["y"], [IMAGE])


def test_archives_and_folders_of_arrays_are_signals(tmp_path: Path) -> None:
    assert is_signals(tmp_path / "a.npz")
    assert not is_signals(tmp_path)
    np.save(tmp_path / "x.npy", np.zeros(3))
    assert is_signals(tmp_path)


def test_recordings_are_cut_to_the_networks_length(tmp_path: Path) -> None:
    for name in ("down", "up"):
        (tmp_path / name).mkdir()
        for i in range(10):
            wavfile.write(tmp_path / name / f"{i}.wav", 100, np.full((45, 6), 100 * i + len(name), np.int16))
    wavfile.write(tmp_path / "up" / "long.wav", 100, np.ones((450, 6), np.int16))
    assert is_signals(tmp_path)
    with mock.patch("psutil.virtual_memory", return_value=mock.Mock(available=60_000)):  # not for windows of 450
        own = read_own_signals(tmp_path, None, None).for_network("mine.onnx", 2, ["y"], [IMAGE])
    found = section(own)
    assert own.kind == "series"
    assert (found["length"], found["hop"]) == (20, 20)
    assert "layout" not in found
    assert "signals, each [6, 20] finite numbers; 2 classes (down, up)" in own.summary()[0]
    with pytest.raises(AgreementError, match=r"takes \[1, 3, 1, 20\], the signals .* have the shape \[6, 20\]"):
        own.for_network("mine.onnx", 2, ["y"], [(1, 3, 1, 20)])


def test_numbers_and_vectors_are_what_the_task_says(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(60, 6, 20)).astype(np.float32)
    np.savez(tmp_path / "a.npz", x=x, y=x.mean((1, 2)))
    own = read_own_signals(tmp_path / "a.npz", None, None, "regression").for_network("n.onnx", 1, ["y"], [IMAGE])
    assert section(own)["task"] == "regression"
    assert "1 numbers (y)" in own.summary()[0]
    with pytest.raises(AgreementError, match="has 2 outputs"):
        own.for_network("n.onnx", 2, ["y"], [IMAGE])
    np.savez(tmp_path / "b.npz", x=x, y=np.arange(60) % 3)
    own = read_own_signals(tmp_path / "b.npz", None, None, "embedding").for_network("n.onnx", 16, ["v"], [IMAGE])
    assert section(own)["task"] == "embedding"
    assert "# The network's outputs are vectors; the signals' classes judge whose neighbours they are:" in own.lines()
    with pytest.raises(AgreementError, match=r"returns a, b, and --task embedding needs one row of numbers \[n, k\]"):
        own.for_network("n.onnx", 0, ["a", "b"], [IMAGE])
