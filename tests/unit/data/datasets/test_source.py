"""Datasets of the user's: what their items may be, what is refused, and which changes of them are noticed."""

from __future__ import annotations

import logging
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch

from autotailor import data
from autotailor.data.labels import UNKNOWN

HEAD = """
import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset, Subset, IterableDataset

class Squares(Dataset):
    def __init__(self, count=30, kind="pil", classes=3, shift=0):
        self.count, self.kind, self.number, self.shift = count, kind, classes, shift
    def __len__(self):
        return self.count
    def pixels(self, index):
        return np.random.default_rng(index + self.shift).integers(0, 255, (20, 24, 3), dtype=np.uint8)
    def __getitem__(self, index):
        pixels, label = self.pixels(index), index % self.number
        if self.kind == "array":
            return pixels, np.int64(label)
        if self.kind == "tensor":
            return torch.from_numpy(pixels).permute(2, 0, 1), torch.tensor(label)
        if self.kind == "share":
            return torch.from_numpy(pixels).permute(2, 0, 1) / 255, label
        return Image.fromarray(pixels), label
"""
written = 0


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Writes a module with ``Squares`` and more code; answers the section that names its function ``make``."""
    monkeypatch.chdir(tmp_path)

    def write(code: str, **more: object) -> dict[str, object]:
        global written
        written += 1
        name = f"own_pictures_{written}"
        (tmp_path / f"{name}.py").write_text(HEAD + textwrap.dedent(code))
        return {"name": "mine", "kind": "source", "source": f"{name}:make", "resolution": 16, **more}

    return write


def read(splits: data.DataSplits) -> torch.Tensor:
    return torch.cat([images for images, _ in splits.validation.batches(4)])


def test_one_dataset_is_divided_here(module) -> None:  # type: ignore[no-untyped-def]
    section = module("def make(): return Squares()")
    splits = data.load(section)
    assert (splits.num_classes, len(splits.train), len(splits.validation), len(splits.test)) == (3, 24, 3, 3)
    assert sorted(splits.test.labels) == [0, 1, 2]
    assert data.classes(section) is None
    images, labels = next(splits.train.batches(0, 8))
    assert images.shape == (8, 3, 16, 16)
    assert set(labels.tolist()) <= {0, 1, 2}


def test_parts_that_the_function_makes_are_taken(module) -> None:  # type: ignore[no-untyped-def]
    three = data.load(module("def make(): return Squares(12), Squares(6), Squares(3)"))
    assert [len(part) for part in (three.train, three.validation, three.test)] == [12, 6, 3]
    listed = data.load(module("def make(): return [Squares(12), Squares(6), Squares(3)]"))
    assert [len(part) for part in (listed.train, listed.validation, listed.test)] == [12, 6, 3]
    named = data.load(module("def make(): return {'validation': Squares(6), 'train': Squares(12)}"))
    assert [len(part) for part in (named.train, named.validation, named.test)] == [12, 3, 3]
    pair = data.load(module("def make(count): return Squares(count), Squares(6)", arguments={"count": 15}))
    assert [len(part) for part in (pair.train, pair.validation, pair.test)] == [15, 3, 3]


def test_images_of_every_kind_are_the_same_pictures(module) -> None:  # type: ignore[no-untyped-def]
    kinds = [
        data.load(module(f"def make(): return Squares(12), Squares(9, {kind!r}), Squares(3)"))
        for kind in ("pil", "array", "tensor", "share")
    ]
    assert all(torch.equal(read(kinds[0]), read(other)) for other in kinds[1:])


def test_attributes_that_list_nothing_are_no_lists(module) -> None:  # type: ignore[no-untyped-def]
    """Whatever a Dataset of the user's calls its own things."""
    section = module("""
        from pathlib import Path
        class Odd(Squares):
            targets, labels = 7, Path("labels.csv")
            def classes(self): return 3
        class Counted(Squares):
            classes = 2
            def __getitem__(self, index):
                picture, label = super().__getitem__(index)
                return torch.from_numpy(np.array(picture)).permute(2, 0, 1).to(torch.bfloat16) / 255, label
        def make(): return Odd(12), Counted(9)
    """)
    splits = data.load(section)
    assert data.classes(section) is None
    assert splits.num_classes == 3
    assert read(splits).isfinite().all()


def test_training_images_depend_on_seed_epoch_and_index_alone(module) -> None:  # type: ignore[no-untyped-def]
    stream = data.load(module("def make(): return Squares(20), Squares(6)")).train
    whole = torch.cat([images for images, _ in stream.batches(1, 20)])
    assert torch.equal(torch.cat([images for images, _ in stream.batches(1, 5, start=2)]), whole[10:])
    assert not torch.equal(whole, next(stream.batches(2, 20))[0])


def test_listed_labels_are_taken_without_reading_an_item(module) -> None:  # type: ignore[no-untyped-def]
    section = module("""
        class Listed(Squares):
            read = 0
            targets = [i % 3 for i in range(200)]
            classes = ["ant", "bee", "cat"]
            def __getitem__(self, index):
                Listed.read += 1
                return super().__getitem__(index)
        def make():
            return Subset(Listed(200), range(100)), Subset(Listed(200), range(100, 160))
    """)
    splits = data.load(section | {"arguments": {}})
    import importlib

    listed = importlib.import_module(str(section["source"]).partition(":")[0]).Listed
    assert listed.read <= 2 * 16 * 2  # the fingerprint reads a sample of each part twice
    assert splits.train.pictures.labels.tolist() == [i % 3 for i in range(100)]  # type: ignore[attr-defined]
    assert data.classes(module("""
        class Named(Squares):
            classes = ["ant", "bee", "cat"]
        def make(): return Named()
    """)) == ("ant", "bee", "cat")  # fmt: skip


def test_labels_are_not_needed(module) -> None:  # type: ignore[no-untyped-def]
    section = module("""
        class Bare(Squares):
            def __getitem__(self, index): return super().__getitem__(index)[0]
        def make(): return Bare()
    """)
    splits = data.load(section | {"labels": False})
    assert (splits.labelled, splits.num_classes, len(splits.train)) == (False, 0, 24)
    assert set(splits.test.labels) == {UNKNOWN}
    with pytest.raises(data.DataError, match=r"item 0 is a Image; return \(image, label\)"):
        data.load(section)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def make(): return 3", r"train is a int without a length"),
        ("def make(): return iter([1])", r"without a length"),
        ("def make(): return Squares(0)", r"train has no items"),
        ("def make(): return (Squares(),) * 4", r"expected one to three datasets .*not 4"),
        ("def make(): return {'train': Squares(), 'extra': Squares()}", r"unknown part 'extra'"),
        ("def make(): return {'val': Squares()}", r"expected train"),
        ("def make(): raise OSError('the disk is gone')", r"\(OSError: the disk is gone, at own_pictures_\d+\.py:"),
        ("def made(): return Squares()", r"has no attribute 'make'"),
        ("make = 3", r"is a int; name a function"),
        ("def make(): return Squares(classes=1), Squares(6, classes=2)", r"label 1 .*item 1 of val has the largest"),
        ("def make(): return [(np.zeros((4, 4, 3), np.uint8), i) for i in (0, 1, 7)]", r"item 2 of train has"),
        ("def make(): return [(np.full((4, 4, 3), 77.0), 1)] * 9", r"0 and 1; scale them to this range"),
        ("def make(): return [(np.full((4, 4, 3), 900, np.uint16), 1)] * 9", r"0 and 255; scale them"),
        ("def make(): return [(np.zeros((4, 4, 3), np.uint8), 1.5)] * 9", r"item 0: its label is 1\.5"),
        ("def make(): return [(np.zeros((4, 4, 3), np.uint8), -1)] * 9", r"item 0 of train has the label -1"),
        ("def make(): return [(np.zeros((6, 7, 5), np.uint8), 1)] * 9", r"shape \[6, 7, 5\]; return 1 \(grey\), 3"),
        ("def make(): return [(np.zeros((2, 3, 4, 4), np.uint8), 1)] * 9", r"not that of one picture"),
        ("def make(): return [(np.zeros((0, 4, 3), np.uint8), 1)] * 9", r"not that of one picture"),
        ("def make(): return [(np.full((4, 4, 3), -0.5), 1)] * 9", r"run from -0\.5 .*without normalisation"),
        ("def make(): return [(np.full((4, 4, 3), np.nan), 1)] * 9", r"no numbers \(NaN\); return pixels"),
        ("def make(): return [(np.full((4, 4, 3), 1j), 1)] * 9", r"of the type complex128"),
        ("def make(): return [('a.jpg', 1)] * 9", r"its image is a str; return a PIL image, an array or a tensor"),
        ("""
         class Random(Squares):
             def pixels(self, index): return np.random.randint(0, 255, (20, 24, 3), dtype=np.uint8)
         def make(): return Random()
         """, r"another picture each time it is read.*without random augmentation"),
        ("""
         class Wrong(Squares):
             targets = [0] * 30
         def make(): return Wrong()
         """, r"has the label 1, and the dataset lists 0"),
        ("""
         class Broken(Squares):
             def __getitem__(self, index): raise KeyError(index)
         def make(): return Broken()
         """, r"item 0 cannot be read \(KeyError: 0, at own_pictures_\d+\.py:\d+\)"),
        ("def make(): raise SystemExit(0)", r"cannot be called \(SystemExit: 0, at .*; it exits: put what reads the"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_by_name(module, code: str, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(data.DataError, match=message):
        data.load(module(code))


def test_a_source_that_is_not_there_is_named(module) -> None:  # type: ignore[no-untyped-def]
    section = module("")
    wanted = {"": "set data.source to", "nowhere:make": "nowhere cannot be imported", "x": "expected package.module"}
    for source, message in wanted.items():
        with pytest.raises(data.DataError, match=message):
            data.check(section | {"source": source})


def test_changes_of_code_items_and_version_are_noticed(module, caplog: pytest.LogCaptureFixture) -> None:  # type: ignore[no-untyped-def]
    section = module("def make(shift=0, count=30): return Squares(count, shift=shift)")
    before = data.fingerprint(section)
    assert data.fingerprint(section | {"resolution": 32}) == before
    others = [{"arguments": {"shift": 1}}, {"arguments": {"count": 31}}, {"version": "2"}]
    prints = {data.fingerprint(section | other) for other in others}
    path = Path(f"{str(section['source']).partition(':')[0]}.py")
    path.write_text(path.read_text() + "\n# a comment\n")
    assert data.fingerprint(section) == before
    path.write_text(path.read_text() + "\nMORE = 1\n")
    prints.add(data.fingerprint(section))
    assert len(prints | {before}) == 5
    with caplog.at_level(logging.INFO):
        data.load(section)
    assert "change data.version where other items change" in caplog.text


def test_grey_and_transparent_items_become_rgb(module) -> None:  # type: ignore[no-untyped-def]
    section = module("""
        def make():
            grey = [(np.full((8, 8), 100 + i, np.uint8), i % 2) for i in range(6)]
            clear = [(np.zeros((4, 8, 8), np.uint8), i % 2) for i in range(4)]
            return grey, [(torch.from_numpy(image), label) for image, label in clear]
    """)
    splits = data.load(section | {"mean": [0, 0, 0], "std": [1, 1, 1], "flip": False})
    assert torch.equal(read(splits), torch.ones(2, 3, 16, 16))  # what is transparent is white
    first = splits.train.pictures.open(0)  # type: ignore[attr-defined]
    assert np.asarray(first).tolist() == np.full((8, 8, 3), 100).tolist()


NUMBERS = """
class Angles(Squares):
    def __getitem__(self, index):
        return Image.fromarray(self.pixels(index)), %s

def make():
    return Angles()
"""


def test_items_with_numbers_are_targets_of_a_regression(module) -> None:  # type: ignore[no-untyped-def]
    splits = data.load(module(NUMBERS % "(index / 10, np.float32(-index))", task="regression"))
    assert (splits.num_classes, splits.image()) == (2, (3, 16, 16))
    found = np.concatenate([splits.validation.labels, splits.test.labels])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[:, 0] * -10, found[:, 1], rtol=1e-6)
    assert data.load(module(NUMBERS % "index / 10", task="regression")).num_classes == 1


@pytest.mark.parametrize(
    ("label", "says"),
    [
        ("'far'", "item 0: its label is 'far'; return one finite number or a row of them"),
        ("float('nan') if index == 29 else 1.0", "item 29: its label is nan; return one finite number"),
        ("[1.0] * (1 + index // 20)", r"labels of its items have \[1, 2\] numbers; give all as many"),
    ],
    ids=["text", "nan", "lengths"],
)
def test_items_without_finite_numbers_are_named(module, label: str, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(data.DataError, match=says):
        data.load(module(NUMBERS % label, task="regression"))
