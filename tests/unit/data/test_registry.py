"""The registry of datasets: names, refusals, and the fingerprint of the content of the data."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from PIL import Image

import picture_files
from autotailor import data
from autotailor.data.registry import register
from picture_files import encoded, photo

CONF = Path(__file__).parents[3] / "conf" / "data"


def test_all_datasets_are_found() -> None:
    pictures = ("digits", "folder", "huggingface", "masks", "source", "table", "torchvision", "webdataset")
    assert data.names() == tuple(sorted(("arrays", "coco", "series", *pictures)))


def test_every_configured_dataset_is_known_and_its_parameters_are_accepted() -> None:
    assert {path.stem for path in CONF.glob("*.yaml")} >= {"digits", "cifar10", "imagenet"}
    for path in CONF.glob("*.yaml"):
        section = yaml.safe_load(path.read_text().replace("${seed}", "0").replace("${model.resolution}", "32"))
        refusal = _refusal(section | ({"download": False} if "download" in section else {}))
        assert not refusal or ("unknown" not in refusal and re.search(r"put|set data\.", refusal.lower()))


def _refusal(section: dict[str, object]) -> str:
    try:
        data.check(section)
    except data.DataError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("section", [{}, {"name": 3}, "digits", {"name": "cats"}, {"name": "mine", "kind": "cats"}])
def test_unknown_datasets_are_refused_with_the_known_ones(section: object) -> None:
    for entrance in (data.check, data.load):
        with pytest.raises(
            data.DataError, match="digits, folder, huggingface, masks, series, source, table, torchvision, webdataset"
        ):
            entrance(section)  # type: ignore[operator]


def test_a_name_is_registered_once() -> None:
    data.names()
    with pytest.raises(data.DataError, match="twice"):
        register("digits")(lambda section: None)  # type: ignore[arg-type, return-value]


def test_the_fingerprint_says_what_the_data_were_made_from() -> None:
    prints = {data.load({"name": "digits", "seed": s, "evaluation_images": 2}).fingerprint for s in (0, 0, 1)}
    assert len(prints) == 2


def test_resize_is_antialiased_and_leaves_equal_sizes_alone() -> None:
    stripes = torch.zeros(1, 3, 32, 32)
    stripes[..., ::2] = 1.0
    assert data.resize(stripes, 32) is stripes
    small = data.resize(stripes, 8)
    assert small.shape == (1, 3, 8, 8)
    assert (small - 0.5).abs().max() < 0.1
    with pytest.raises(data.DataError, match="at least 1"):
        data.resize(stripes, 0)


def test_a_fingerprint_depends_neither_on_times_nor_place_nor_other_parameters(root: Path, tmp_path: Path) -> None:
    before = data.fingerprint(picture_files.section(root))
    for path in root.rglob("*.png"):
        os.utime(path, (1, 1))
    shutil.copytree(root, tmp_path / "elsewhere")
    (root / "notes.txt").write_text("no picture")
    assert data.fingerprint(picture_files.section(root, resolution=32)) == before
    assert data.fingerprint(picture_files.section(tmp_path / "elsewhere", name="other")) == before


@pytest.mark.parametrize("change", ["content", "added", "removed", "renamed", "other class", "other part"])
def test_a_fingerprint_changes_with_every_change_of_the_pictures(root: Path, change: str) -> None:
    before = data.fingerprint(picture_files.section(root))
    picture = root / "train" / "cat" / "0.png"
    if change == "content":
        changed = bytearray(picture.read_bytes())
        changed[-1] ^= 1
        stamp = picture.stat().st_mtime_ns
        picture.write_bytes(changed)  # as long as before, and as old
        os.utime(picture, ns=(stamp, stamp))
    elif change == "added":
        shutil.copy(picture, picture.with_name("9.png"))
    elif change == "removed":
        picture.unlink()
    else:
        place = {"renamed": "train/cat/9.png", "other class": "train/dog/9.png", "other part": "val/cat/9.png"}
        picture.rename(root / place[change])
    assert data.fingerprint(picture_files.section(root)) != before


def test_links_that_lead_back_end(root: Path) -> None:
    before = data.fingerprint(picture_files.section(root))
    (root / "train" / "cat" / "again").symlink_to(root / "train" / "cat")
    assert data.fingerprint(picture_files.section(root)) == before


def test_the_embedded_digits_are_the_digits_whatever_is_made_of_them() -> None:
    one, two = (data.fingerprint({"name": "digits", "seed": seed}) for seed in (0, 1))
    assert one == two
    assert len(one) == 64


def test_a_torchvision_dataset_is_its_own_files_and_not_its_neighbours(tmp_path: Path) -> None:
    cifar = {"name": "c", "kind": "torchvision", "dataset": "CIFAR10", "root": str(tmp_path), "resolution": 32}
    own = tmp_path / "cifar-10-batches-py"
    own.mkdir()
    (own / "data_batch_1").write_bytes(b"1")
    before = data.fingerprint(cifar)
    (tmp_path / "MNIST").mkdir()
    (tmp_path / "MNIST" / "raw").write_bytes(b"2")
    assert data.fingerprint(cifar) == before
    (own / "data_batch_1").write_bytes(b"3")
    assert data.fingerprint(cifar) != before
    with pytest.raises(data.DataError, match="is not under"):
        data.fingerprint({**cifar, "root": str(tmp_path / "nowhere"), "download": False})


def test_files_in_the_root_itself_are_a_datasets_and_folders_beside_them_are_not(tmp_path: Path) -> None:
    svhn = {"name": "s", "kind": "torchvision", "dataset": "SVHN", "root": str(tmp_path), "resolution": 32}
    (tmp_path / "train_32x32.mat").write_bytes(b"1")
    before = data.fingerprint(svhn)
    for folder in ("cifar-10-batches-py", "imagenette2-160"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "0").write_bytes(b"2")
    assert data.fingerprint(svhn) == before
    nette = data.fingerprint({**svhn, "dataset": "Imagenette"})
    (tmp_path / "train_32x32.mat").write_bytes(b"3")
    assert data.fingerprint(svhn) != before
    assert data.fingerprint({**svhn, "dataset": "Imagenette"}) == nette


def test_every_dataset_of_torchvision_that_is_offered_can_be_asked_for(tmp_path: Path) -> None:
    """Nothing can be fetched here: each says so, or that it has no such part, and none ends in a traceback."""
    section = {"name": "t", "kind": "torchvision", "root": str(tmp_path), "resolution": 32, "download": False}
    offered = re.findall(r"\w+", _refusal({**section, "dataset": "Kinetics"}).partition("to one of ")[2])
    assert {"CIFAR10", "OxfordIIITPet", "Imagenette", "Places365"} <= set(offered)
    assert "Kinetics" not in offered
    for dataset in offered:
        assert re.search(
            "is not under .* and data.download is false|has no split", _refusal({**section, "dataset": dataset})
        )


def test_what_was_trained_on_changes_with_the_pictures_and_not_with_their_place(root: Path, tmp_path: Path) -> None:
    before = data.load(picture_files.section(root)).fingerprint
    shutil.copytree(root, tmp_path / "elsewhere")
    assert data.load(picture_files.section(tmp_path / "elsewhere", workers=1)).fingerprint == before
    assert data.load(picture_files.section(root, resolution=32)).fingerprint != before
    (root / "val" / "cat" / "0.png").unlink()
    assert data.load(picture_files.section(root)).fingerprint != before


@pytest.mark.parametrize("kind", ["folder", "torchvision", "digits"])
def test_a_fingerprint_which_every_parse_of_the_snakefile_makes_imports_no_torch(kind: str, tmp_path: Path) -> None:
    section = {"name": "digits"} if kind == "digits" else {"name": "m", "kind": kind, "root": str(tmp_path)}
    if kind != "digits":
        section |= {"resolution": 16} | ({"dataset": "CIFAR10"} if kind == "torchvision" else {})
        for name in ("cifar-10-batches-py", "dog"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "0.png").write_bytes(encoded(photo(), "PNG"))
    code = f"import sys; from autotailor import data; print(data.fingerprint({section!r})); "
    code += "assert not {'torch', 'torchvision', 'sklearn', 'timm'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.strip()) == 64


def test_a_changed_test_picture_leaves_the_fingerprint_of_the_training(tmp_path: Path) -> None:
    for part in ("train", "test"):
        for label in "ab":
            (tmp_path / part / label).mkdir(parents=True)
            for number in range(4):
                Image.new("RGB", (8, 8), (number, 9, 9)).save(tmp_path / part / label / f"{number}.png")
    section = {"name": "mine", "kind": "folder", "root": str(tmp_path), "resolution": 8}

    def prints() -> tuple[str, str]:
        return data.training_fingerprint(section), data.fingerprint(section)

    before = prints()
    Image.new("RGB", (8, 8), "red").save(tmp_path / "test" / "a" / "0.png")
    after = prints()
    assert (after[0] == before[0], after[1] == before[1]) == (True, False)
    Image.new("RGB", (8, 8), "blue").save(tmp_path / "train" / "a" / "0.png")
    assert prints()[0] != before[0]
    shutil.rmtree(tmp_path / "test")  # from now on they are drawn from the training pictures
    assert prints()[0] == prints()[0] != before[0]
