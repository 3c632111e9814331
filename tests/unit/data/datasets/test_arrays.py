"""Signals in arrays: parts, layouts, normalisation, changes, and what is refused."""

import struct
import zipfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch

from autotailor import data
from autotailor.data import DataSplits
from autotailor.data.errors import DataError


def signals(count: int, seed: int = 0, shape: tuple[int, ...] = (3, 16)) -> dict[str, Any]:
    """Sines whose frequency is the class, on channels of unlike means."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % 4
    phases = random.uniform(0, 6, (count, *shape[:-1], 1))
    axis = np.linspace(0, 6, shape[-1])
    x = np.sin((1 + labels.reshape(-1, *[1] * len(shape))) * axis + phases) + 0.1 * random.normal(size=(count, *shape))
    offset = np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1)) if len(shape) > 1 else 0.0
    return {"x": (x + offset).astype(np.float32), "y": labels}


def load(root: Path, **more: Any) -> DataSplits:
    return data.load({"name": "mine", "kind": "arrays", "root": str(root), "seed": 0, **more})


def written(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def test_an_archive_is_divided_and_normalised_by_its_training_signals(tmp_path: Path) -> None:
    splits = load(written(tmp_path / "a.npz", **signals(200)))
    sizes = [len(part) for part in (splits.train, splits.validation, splits.test)]
    assert sizes == [160, 20, 20]
    assert splits.classes == ("0", "1", "2", "3")
    assert splits.signal
    assert (splits.image(), splits.signal.file, splits.resolution) == ((3, 1, 16), (3, 16), 16)
    whole = torch.cat([batch for batch, _ in splits.train.batches(0, 160)])
    assert whole.shape == (160, 3, 1, 16)
    assert torch.allclose(whole.mean((0, 2, 3)), torch.zeros(3), atol=1e-4)
    assert torch.allclose(whole.std((0, 2, 3)), torch.ones(3), atol=1e-2)
    assert splits.mean[1] - splits.mean[0] == pytest.approx(1, abs=0.1)


def test_a_folder_of_mapped_files_with_parts_of_its_own_and_channels_last(tmp_path: Path) -> None:
    for part, count in (("train", 40), ("val", 12), ("test", 16)):
        made = signals(count, seed=count)
        np.save(tmp_path / f"X_{part}.npy", made["x"].transpose(0, 2, 1))
        np.save(tmp_path / f"y_{part}.npy", np.array(["a", "b", "c", "d"])[made["y"]])
    splits = load(tmp_path, layout="last", mean=[0.0, 1.0, 2.0], std=[1.0, 1.0, 2.0])
    assert [len(part) for part in (splits.train, splits.validation, splits.test)] == [40, 12, 16]
    assert splits.classes == ("a", "b", "c", "d")
    found, labels = next(splits.test.batches(16))
    wanted = (signals(16, seed=16)["x"] - np.array([0, 1, 2]).reshape(1, 3, 1)) / np.array([1, 1, 2]).reshape(1, 3, 1)
    np.testing.assert_allclose(found[:, :, 0].numpy(), wanted, atol=1e-6)
    assert labels.tolist() == [i % 4 for i in range(16)]


@pytest.mark.parametrize("names", [["a", "b", "c", "d"], ["Äpfel", "Birne", "Öl", "été"]])
@pytest.mark.parametrize("parts", [("",), ("_train", "_val", "_test")])
def test_names_of_classes_in_bytes_are_those_in_text(names: list[str], parts: tuple[str, ...], tmp_path: Path) -> None:
    made = {part: signals(80, seed=number) for number, part in enumerate(parts)}
    given = {f"{key}{part}": array for part, each in made.items() for key, array in each.items()}
    text = {key: np.array(names)[array] if key[0] == "y" else array for key, array in given.items()}
    in_bytes = {key: np.char.encode(array, "utf-8") if key[0] == "y" else array for key, array in text.items()}
    found, wanted = (load(written(tmp_path / f"{i}.npz", **each)) for i, each in enumerate((in_bytes, text)))
    assert found.classes == wanted.classes == tuple(sorted(names))
    for each in ("validation", "test"):
        assert np.array_equal(getattr(found, each).labels, getattr(wanted, each).labels)
    assert torch.equal(next(found.train.batches(0, 64))[1], next(wanted.train.batches(0, 64))[1])


@pytest.mark.parametrize(("shape", "image"), [((16,), (1, 1, 16)), ((2, 8, 12), (2, 8, 12))])
def test_lines_and_maps_are_signals_too(shape: tuple[int, ...], image: tuple[int, ...], tmp_path: Path) -> None:
    made = signals(80, shape=shape)
    assert load(written(tmp_path / "a.npz", **made)).image() == image
    numbers = made["x"]
    made["x"] = np.clip(128 + 30 * numbers, 0, 255).astype(np.uint8)
    in_bytes = load(written(tmp_path / "b.npz", **made), mean=[0.0] * image[0], std=[1.0] * image[0])
    found = next(in_bytes.validation.batches(8))[0]
    assert 0 <= float(found.min()) < float(found.max()) <= 1
    assert in_bytes.signal.scale == 255


def test_a_group_stays_in_one_part(tmp_path: Path) -> None:
    made = signals(240)
    people = np.array([f"person {i // 4 % 12}" for i in range(240)])
    splits = load(written(tmp_path / "a.npz", groups=people, **made), fractions=[0.5, 0.25, 0.25])
    held = [set(part.groups.tolist()) for part in (splits.validation, splits.test)]
    assert not held[0] & held[1]
    assert len(splits.train) + len(splits.validation) + len(splits.test) == 240
    assert len(splits.train) % 20 == 0


def test_changes_depend_on_seed_epoch_and_signal_alone(tmp_path: Path) -> None:
    root = written(tmp_path / "a.npz", **signals(200))
    splits, plain = load(root, shift=3, noise=0.1), load(root)
    epochs = [list(splits.train.batches(epoch, 16)) for epoch in (0, 0, 1)]
    for (one, _), (other, _) in zip(epochs[0], epochs[1], strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(epochs[0][0][0], epochs[2][0][0])
    resumed = list(splits.train.batches(0, 16, start=4))
    assert torch.equal(resumed[0][0], epochs[0][4][0])
    moved, still = epochs[0][0][0], next(plain.train.batches(0, 16))[0]
    nearest = torch.stack([(still.roll(by, -1) - moved).square().mean((1, 2, 3)) for by in range(-3, 4)]).amin(0)
    assert torch.allclose(nearest, torch.full((16,), 0.01), atol=0.006)


@pytest.mark.parametrize(
    ("arrays", "more", "message"),
    [
        ({}, {}, "expected x_train and y_train, or x and y"),
        ({"x": np.zeros((8, 3))}, {}, r"no labels y_train or y; add them, or set data.labels to false"),
        ({"x": np.zeros((8, 3, 4)), "y": np.zeros(7, int)}, {}, "y has 7 rows, x has 8"),
        ({"x": np.zeros((8, 3, 4)), "y": np.zeros(8)}, {}, "labels y are float64; give the number of each class"),
        ({"x": np.full((8, 3, 4), np.nan), "y": np.arange(8) % 2}, {}, "signal 0 of x_train holds numbers"),
        ({"x": np.zeros((8, 3, 4)), "y": np.arange(8) % 2}, {"mean": [0.0], "std": [1.0]}, "have 3 channels"),
        ({"x": np.zeros((8, 3, 4, 5, 6)), "y": np.arange(8) % 2}, {}, r"expected numbers \[n, channels, length\]"),
        ({"x": np.array([["a"]] * 8), "y": np.arange(8) % 2}, {}, "expected numbers"),
    ],
)
def test_what_does_not_fit_is_refused(arrays: dict[str, Any], more: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        load(written(tmp_path / "a.npz", **arrays), **more)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"neither an .npz file nor a folder of .npy files; set data.root"):
        load(tmp_path / "nothing.npz")
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    with pytest.raises(DataError, match="it cannot be read"):
        load(tmp_path / "bad.npz")
    np.save(tmp_path / "x.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(DataError, match="it cannot be read"):
        load(tmp_path)


def test_an_archive_larger_than_the_memory_is_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("x_train.npy", b"")
    content = bytearray((tmp_path / "a.npz").read_bytes())
    at = content.rindex(b"PK\x01\x02") + 24  # the unpacked size in the list of contents
    content[at : at + 4] = struct.pack("<I", 2**32 - 2)
    (tmp_path / "a.npz").write_bytes(content)
    with (
        mock.patch("psutil.virtual_memory", return_value=mock.Mock(available=2**31)),
        pytest.raises(DataError, match=r"unpacks to 4,294,967,294 bytes, and 2,147,483,648 of memory are free"),
    ):
        load(tmp_path / "a.npz")


def test_signals_without_labels_have_none(tmp_path: Path) -> None:
    splits = load(written(tmp_path / "a.npz", x=signals(80)["x"]), labels=False)
    assert not splits.labelled
    assert set(splits.validation.labels.tolist()) == {-1}


@pytest.mark.parametrize("shape", [(), (1,), (3,)], ids=str)
def test_numbers_are_labels_of_a_regression(shape: tuple[int, ...], tmp_path: Path) -> None:
    x = signals(60)["x"]
    y = np.multiply.outer(x.mean((1, 2)), np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape))
    splits = load(written(tmp_path / "a.npz", x=x, y=y), task="regression")
    count = max(1, *shape) if shape else 1
    assert splits.classes == (("y",) if count == 1 else ("y0", "y1", "y2"))
    batch, labels = next(splits.train.batches(0, 48))
    assert (labels.dtype, labels.shape) == (torch.float32, (48, count))
    plain = batch * torch.tensor(splits.std)[:, None, None] + torch.tensor(splits.mean)[:, None, None]
    torch.testing.assert_close(labels[:, 0], plain.mean((1, 2, 3)), atol=1e-4, rtol=1e-4)
    assert splits.validation.task == splits.test.task != "regression"


@pytest.mark.parametrize(
    ("y", "says"),
    [
        (
            np.array(["a", "b"])[np.arange(60) % 2],
            r"labels y are <U1 \[60\], and data\.task is regression; give finite",
        ),
        (np.where(np.arange(60) == 7, np.nan, 1.0), "row 7 of y is nan; leave it out"),
        (np.where(np.arange(120).reshape(60, 2) == 11, np.inf, 1.0), "row 5, column 1 of y is inf"),
        (np.zeros((60, 2, 2)), r"labels y are float64 \[60, 2, 2\]"),
    ],
    ids=["text", "nan", "inf", "map"],
)
def test_labels_that_are_no_finite_numbers_are_named(y: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=says):
        load(written(tmp_path / "a.npz", x=signals(60)["x"], y=y), task="regression")


def test_numbers_without_their_task_are_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"labels y are float64; .* numbers that are no classes want data\.task regression"
    ):
        load(written(tmp_path / "a.npz", x=signals(60)["x"], y=np.arange(60) / 7))
