"""Pictures with masks: what is read, what goes with what, and what is refused before any work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import picture_files
from autotailor import config, data
from autotailor.data import DataError
from autotailor.data.augmentation.config import AugmentationConfig
from autotailor.data.augmentation.mixing import mixing
from autotailor.data.augmentation.stream import augmented
from autotailor.data.datasets.masks import MasksConfig
from autotailor.data.labels import IGNORED
from autotailor.data.pictures.reduced import reduced
from autotailor.data.pictures.stream import _training
from autotailor.data.splits import DataSplits, TensorEvaluationSet

CLASSES = ("sea", "land", "sky", "ship")
ROOT = Path(__file__).parents[4]


def shapes(number: int, size: tuple[int, int] = (40, 30)) -> np.ndarray:
    """A mask of blocks, other for each number: ``[height, width]``."""
    blocks = np.random.default_rng(number).integers(0, len(CLASSES), (3, 4), dtype=np.uint8)
    return np.asarray(Image.fromarray(blocks).resize(size, Image.Resampling.NEAREST))


def coloured(mask: np.ndarray) -> Image.Image:
    """A picture whose red says the class of each pixel."""
    return Image.fromarray(np.stack([60 * mask, 0 * mask, 0 * mask], 2).astype(np.uint8))


def classes_in(images: torch.Tensor) -> torch.Tensor:
    """The class that the red of each pixel says, of images normalised by mean 0.5 and std 0.25."""
    return ((images[:, 0] * 0.25 + 0.5) * 255 / 60).round().long()


def write(root: Path, count: int = 24, parts: tuple[str, ...] = ("",)) -> Path:
    for place, part in enumerate(parts):
        for name in ("images", "masks"):
            (root / part / name / "deep").mkdir(parents=True)
        for number in range(count):
            mask = shapes(1000 * place + number)
            coloured(mask).save(root / part / "images" / "deep" / f"{number}.png")
            Image.fromarray(mask).save(root / part / "masks" / "deep" / f"{number}.png")
    (root / "classes.txt").write_text("\n".join(CLASSES) + "\n", encoding="utf-8")
    return root


def section(root: Path, **more: object) -> dict[str, object]:
    known = {"kind": "masks", "task": "segmentation", "mean": [0.5] * 3, "std": [0.25] * 3, **more}
    return picture_files.section(root, **known)


def agreement(images: torch.Tensor, targets: torch.Tensor) -> float:
    """The share of pixels whose colour says their class; at the edges between classes colours are mixed."""
    return float((classes_in(images) == targets).double().mean())


def test_targets_are_maps_and_go_with_their_pictures_in_all_parts(tmp_path: Path) -> None:
    splits = data.load(section(write(tmp_path), resolution=24))
    assert (splits.classes, splits.num_classes, splits.validation.task) == (CLASSES, 4, "segmentation")
    assert splits.has_maps
    assert len(splits.train) + len(splits.validation) + len(splits.test) == 24
    for images, targets in (
        next(splits.train.batches(0, 8)),
        next(splits.validation.batches(8)),
        next(splits.test.batches(8)),
    ):
        assert (targets.dtype, targets.shape[1:]) == (torch.int64, (24, 24))
        assert len(images) == len(targets)
        assert agreement(images, targets) > 0.8
        assert agreement(images.flip(3), targets) < 0.7
    assert splits.validation.labels.dtype == np.uint8


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(0, 50), st.integers(20, 300), st.integers(20, 300))
def test_a_crop_and_a_flip_are_those_of_the_picture(epoch: int, position: int, width: int, height: int) -> None:
    mask = shapes(epoch, (width, height))
    found = MasksConfig(name="x", resolution=48, mean=(0.5,) * 3, std=(0.25,) * 3, scale=(0.3, 1.0))
    opened = [reduced(each, found) for each in (coloured(mask), Image.fromarray(mask))]
    assert opened[0].size == opened[1].size
    image, target = _training(found, opened, epoch, position, None)
    assert target.dtype == torch.uint8
    assert set(target.unique().tolist()) <= set(np.unique(mask).tolist())
    assert agreement(image[None], target[None]) > 0.75


def test_masks_are_reduced_to_the_pixel_in_the_middle_of_each_square() -> None:
    found = MasksConfig(name="x", resolution=8, scale=(1.0, 1.0))
    mask = Image.fromarray(np.arange(50 * 67, dtype=np.int64).reshape(50, 67).astype(np.uint8))
    small = reduced(mask, found)
    assert small.size == reduced(mask.convert("RGB"), found).size == (23, 17)
    np.testing.assert_array_equal(np.asarray(small)[:16, :22], np.asarray(mask)[1:48:3, 1::3])


@pytest.mark.parametrize("workers", [0, 2])
def test_parts_of_the_user_are_taken_and_are_the_same_with_any_workers(tmp_path: Path, workers: int) -> None:
    root = write(tmp_path, 6, ("train", "val", "test"))
    splits = data.load(section(root, workers=workers, cache=str(tmp_path / "cache")))
    assert [len(part) for part in (splits.train, splits.validation, splits.test)] == [6, 6, 6]
    images, targets = next(splits.test.batches(6))
    again = data.load(section(root, cache=str(tmp_path / "cache")))
    assert torch.equal(next(again.test.batches(6))[1], targets)
    part = splits.test.part(np.array([1, 4]))
    np.testing.assert_array_equal(part.labels, targets[[1, 4]].numpy())
    assert torch.equal(next(part.batches(8))[0], images[[1, 4]])
    assert torch.equal(next(again.train.batches(3, 4))[1], next(splits.train.batches(3, 4))[1])


def test_palettes_and_single_bits_are_numbers_and_ignored_ones_do_not_count(tmp_path: Path) -> None:
    root = write(tmp_path, 6, ("train", "val", "test"))
    mask = shapes(2000)
    known = Image.fromarray(mask).convert("P")
    known.putpalette([9, 9, 9] * 256)
    known.save(root / "test" / "masks" / "deep" / "0.png")
    Image.fromarray(mask > 1).save(root / "test" / "masks" / "deep" / "1.png")
    Image.fromarray(mask.astype(np.uint16)).save(root / "test" / "masks" / "deep" / "2.png")
    assert Image.open(root / "test" / "masks" / "deep" / "1.png").mode == "1"
    labels = data.load(section(root, crop=1.0, resolution=30, ignore=0)).test.labels
    wanted = np.where(mask == 0, IGNORED, mask)[:, 5:35]
    np.testing.assert_array_equal(labels[0], wanted)
    np.testing.assert_array_equal(labels[2], wanted)
    np.testing.assert_array_equal(labels[1], np.where(mask > 1, 1, IGNORED)[:, 5:35])


def test_without_labels_masks_are_not_looked_at(tmp_path: Path) -> None:
    (write(tmp_path) / "masks" / "deep" / "3.png").write_bytes(b"nothing")
    splits = data.load(section(tmp_path, labels=False))
    assert (splits.labelled, splits.num_classes, splits.has_maps) == (False, 0, False)
    assert (splits.validation.labels == -1).all()


def test_the_identity_of_the_data_depends_on_masks_and_classes(tmp_path: Path) -> None:
    root = write(tmp_path, 6, ("train", "val", "test"))
    before = data.fingerprint(section(root)), data.training_fingerprint(section(root))
    Image.fromarray(shapes(7)).save(root / "test" / "masks" / "deep" / "0.png")
    after = data.fingerprint(section(root)), data.training_fingerprint(section(root))
    assert before[0] != after[0]
    assert before[1] == after[1]
    (root / "classes.txt").write_text("a\nb\nc\nd\n")
    assert data.training_fingerprint(section(root)) != after[1]
    assert data.load(section(root)).fingerprint != data.load(section(root, ignore=0)).fingerprint


def _broken(root: Path) -> None:
    Image.fromarray(shapes(0)[:, :20]).save(root / "masks" / "deep" / "0.png")


def _strange(root: Path) -> None:
    mask = shapes(1).copy()
    mask[0, :5] = 9
    Image.fromarray(mask).save(root / "masks" / "deep" / "1.png")


def _channels(root: Path) -> None:
    coloured(shapes(2)).save(root / "masks" / "deep" / "2.png")


def _lossy(root: Path) -> None:
    Image.fromarray(shapes(2)).save(root / "masks" / "deep" / "2.png", format="JPEG")


def _deep(root: Path) -> None:
    Image.fromarray(np.full((30, 40), 700, np.uint16)).save(root / "masks" / "deep" / "2.png")


def _cut(root: Path) -> None:
    path = root / "masks" / "deep" / "3.png"
    path.write_bytes(path.read_bytes()[:60])


def _turned(root: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    coloured(shapes(4)).save(root / "images" / "deep" / "4.png", exif=exif)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_broken, r"masks/deep/0\.png has 20 x 30 pixels, and .*images/deep/0\.png has 40 x 30"),
        (
            _strange,
            r"1\.png has the value 9 at 5 pixels, which is no class: there are 4, from 0 to 3, and 255 is ignored",
        ),
        (_channels, r"2\.png has pixels of several channels \(RGB\); save one channel"),
        (_lossy, r"2\.png is a JPEG file; save masks as PNG"),
        (_deep, r"2\.png has the value 700 at 1,200 pixels, which is no class"),
        (_cut, r"3\.png is cut off or damaged"),
        (_turned, r"masks/deep/4\.png has 40 x 30 pixels, and .*images/deep/4\.png has 30 x 40"),
    ],
)
def test_files_that_cannot_be_used_are_named_before_training(
    tmp_path: Path, spoil: Callable[[Path], None], says: str
) -> None:
    spoil(write(tmp_path))
    for look in (data.verify, data.load):
        with pytest.raises(DataError, match=rf"(?s)1 masks or pictures cannot be used:.*{says}.*nothing was trained"):
            look(section(tmp_path))


@pytest.mark.parametrize(
    ("remove", "says"),
    [
        ("masks/deep/5.png", r"images/deep/5\.png has no mask .*masks/deep/5\.png"),
        ("images/deep/5.png", r"masks/deep/5\.png has no picture"),
        ("classes.txt", r"classes\.txt cannot be read .*; write the name of each class into a line"),
    ],
)
def test_what_is_missing_is_named_at_once(tmp_path: Path, remove: str, says: str) -> None:
    (write(tmp_path) / remove).unlink()
    with pytest.raises(DataError, match=says):
        data.check(section(tmp_path))


def test_two_pictures_do_not_share_a_mask(tmp_path: Path) -> None:
    coloured(shapes(5)).save(write(tmp_path) / "images" / "deep" / "5.jpg")
    with pytest.raises(DataError, match=r"5\.jpg shares its mask with another"):
        data.check(section(tmp_path))


def test_a_folder_without_masks_says_where_they_belong(tmp_path: Path) -> None:
    write(tmp_path / "here")
    (tmp_path / "here" / "masks").rename(tmp_path / "here" / "labels")
    with pytest.raises(DataError, match=r"here has no folder masks; put pictures there as images/NAME\.jpg"):
        data.check(section(tmp_path / "here"))
    with pytest.raises(DataError, match=r"nowhere does not exist; put images there as train/images/NAME\.jpg"):
        data.check(section(tmp_path / "nowhere", classes=list(CLASSES)))


@pytest.mark.parametrize(
    ("classes", "says"),
    [
        (["one"], "data.classes has 1 classes; expected 2 to 255"),
        (["a", "b", "a"], "has a twice"),
        (5, r"data\.classes: expected a list of names, or a file with a name in each line, not 5"),
    ],
)
def test_classes_have_different_names(tmp_path: Path, classes: object, says: str) -> None:
    with pytest.raises(DataError, match=says):
        data.check(section(write(tmp_path), classes=classes))
    assert data.classes(section(tmp_path, classes=["a", "b", "c", "d"])) == ("a", "b", "c", "d")


def test_what_would_leave_masks_behind_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    images = TensorEvaluationSet(torch.zeros(2, 3, 8, 8), np.zeros((2, 8, 8), np.uint8), range(2), "segmentation")
    splits = DataSplits("notes", 4, 8, None, images, images, (0.5,) * 3, (0.25,) * 3)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"augmentation\.policy: randaugment turns and shifts pictures"):
        augmented(splits, AugmentationConfig(policy="randaugment"), 0)
    with caplog.at_level("INFO"):
        assert mixing(splits, AugmentationConfig(cutmix=1.0), 0) is None
    assert "data notes: mixup and cutmix are left out" in caplog.text


def test_a_run_with_masks_is_checked_before_any_work(tmp_path: Path) -> None:
    root = write(tmp_path)
    more = [f"data.root={root}", "model.num_classes=null"]
    turned = "finetune.augmentation.policy=trivialaugment"
    whole = config.compose(ROOT / "conf", "resnet_digits", "macs", ["data=masks", *more, turned])
    with pytest.raises(DataError, match=r"finetune\.augmentation\.policy: trivialaugment turns and shifts"):
        config.check(whole)


def test_labels_of_maps_keep_their_numbers_in_excerpts() -> None:
    maps, floats = np.arange(128, dtype=np.uint8).reshape(2, 8, 8), np.full((2, 1, 1, 3), 0.5, np.float32)
    for labels, kind in ((maps, torch.int64), (floats, torch.float32)):
        images = TensorEvaluationSet(torch.zeros(2, 3, 8, 8), labels, range(2))
        ((_, found),) = images.part(np.array([0, 1])).batches(4)
        assert found.dtype == kind
        np.testing.assert_array_equal(found.numpy(), labels)
