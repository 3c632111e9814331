"""The cases of ``benchmarks/tasks.py pipelines``: what they write, their networks, and the rows of the comparison."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from pipelines import CASES, MODULES, comparison, motion, pasted, series, sound

import autotailor
from autotailor import data
from autotailor.data.splits import DataSplits

HALVES = {"mean": [0.5] * 3, "std": [0.25] * 3}
SECTIONS: dict[str, dict[str, Any]] = {
    "sound": {"kind": "arrays"},
    "motion": {"kind": "arrays"},
    "segmentation": {"kind": "masks", "task": "segmentation", "resolution": 64, **HALVES},
    "detection": {
        "kind": "coco", "task": "detection", "resolution": 64, "crop": 0, **HALVES,
        "decode": "autotailor.task.decoders.centres:centres", **{part: f"{part}.json" for part in pasted.PARTS},
    },
}  # fmt: skip
FEW = 14


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for data; tones stand for the words of espeak-ng, and coloured discs for clip art."""

    def spoken(word: str, voice: str, random: np.random.Generator) -> np.ndarray[Any, Any]:
        tone = np.sin(np.arange(sound.RATE) * (0.1 + 0.05 * sound.WORDS.index(word)))
        return tone + random.normal(0, 0.1, sound.RATE)

    monkeypatch.setattr(sound, "spoken", spoken)
    monkeypatch.setattr(sound, "voices", lambda: [f"voice {number}" for number in range(20)])
    y, x = np.mgrid[-20:20, -20:20]
    for number, (part, name) in enumerate((part, name) for part in pasted.PARTS for name in pasted.CLASSES):
        drawn = np.full((40, 40, 4), 40 + 10 * number, np.uint8)
        drawn[..., 3] = np.where(x**2 + y**2 < 18**2, 255, 0)
        path = tmp_path / "clipart" / "photos" / part / name / "disc.png"
        path.parent.mkdir(parents=True)
        Image.fromarray(drawn).save(path)
    monkeypatch.setattr(pasted, "art", lambda _: tmp_path / "clipart")
    return tmp_path


def written(name: str, folder: Path) -> DataSplits:
    """The data of a case as the project reads them."""
    root = CASES[name].write(folder, 0, FEW)
    assert root == folder / CASES[name].given
    return data.load({"name": name, "root": str(root), **SECTIONS[name]})


def compiled(name: str, folder: Path) -> autotailor.SuperNet:
    """The network of a case as its owner gives it, untrained."""
    case, made = CASES[name], CASES[name].network().eval()
    if not case.signal:
        return autotailor.compile(made, resolution=int(SECTIONS[name]["resolution"]))
    torch.onnx.export(made, (torch.zeros(1, *case.signal),), str(folder / "given.onnx"), dynamo=False)
    return autotailor.compile(folder / "given.onnx")


@pytest.mark.parametrize("name", CASES)
def test_the_network_of_a_case_takes_what_the_project_reads_of_its_data(name: str, folder: Path) -> None:
    splits, net = written(name, folder), compiled(name, folder)
    assert min(len(part) for part in (splits.train, splits.validation, splits.test)) > 0
    images, _ = next(iter(splits.test.batches(4)))
    assert images.shape[1:] == net.input_shape[1:]
    outputs = net.module()(images)
    task = autotailor.task.of(splits)
    judged = task.judge(task.read(outputs, images.shape[-1]), next(iter(splits.test.batches(4)))[1])
    assert len(judged.values) == len(images)


@pytest.mark.parametrize("name", CASES)
def test_the_whole_network_of_a_case_is_elastic(name: str, folder: Path) -> None:
    net = compiled(name, folder)
    assert net.elastic_share().elastic > 0.95
    assert net.space.num_distinct > 100


@pytest.mark.parametrize("name", CASES)
def test_the_owners_loop_trains_a_compiled_network_as_well(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MODULES[name], "EPOCHS", 1)
    monkeypatch.setattr(pasted, "BATCH", 4)
    CASES[name].write(folder, 0, FEW)
    module = comparison.AsGiven(compiled(name, folder).graph)
    before = {key: value.clone() for key, value in module.state_dict().items()}
    assert CASES[name].train(module, folder, 0) >= 8
    assert any(not torch.equal(value, before[key]) for key, value in module.state_dict().items())


def test_no_group_is_in_two_parts(folder: Path) -> None:
    with np.load(motion.write(folder, 0, FEW)) as archive:
        groups = [set(archive[f"groups_{part}"].tolist()) for part in series.PARTS]
    assert sum(map(len, groups)) == len(set.union(*groups)) == FEW


def test_a_mask_and_a_box_lie_where_the_clip_art_is(folder: Path) -> None:
    (_, objects), *_ = pasted.scenes(folder / "clipart", "train", 64, 1, 0)
    assert objects
    CASES["segmentation"].write(folder, 0, 1)
    mask = np.asarray(Image.open(folder / "scenes" / "train" / "masks" / "0000.png"))
    _, place, opacity = objects[-1]
    assert (mask[place][opacity > pasted.OPAQUE] == objects[-1].label + 1).all()


def test_clip_art_that_is_hardly_opaque_is_left_out(folder: Path) -> None:
    faint = np.full((40, 40, 4), 100, np.uint8)
    Image.fromarray(faint).save(folder / "clipart" / "photos" / "val" / "flag" / "faint.png")
    assert [len(kind) for kind in pasted.pieces(folder / "clipart", "val")] == [1] * len(pasted.CLASSES)


def test_acceleration_of_a_sensor_at_rest_is_gravity() -> None:
    still = motion.Motion(1.0, ((0, 0, 0),) * 3, ((0, 0, 0),) * 3, 0.0)
    worn = motion.Rotation.from_rotvec([0.3, -0.2, 0.5])
    found = motion.window(still, 1.0, 1.0, worn, np.random.default_rng(0)).mean(axis=1)
    assert found == pytest.approx([*worn.inv().apply([0, 0, 9.81]), 0, 0, 0], abs=0.3)


class Fixed(comparison.Comparison):
    """A comparison whose scores are known, so that only its rows are made."""

    def __init__(self) -> None:
        self._walk, self._images, self._polished = comparison.Walk("sound", Path(), 0), 1000, 400
        self._run = self
        self.results = Path("results/sound/host")
        self._chosen = dict.fromkeys(comparison.BUDGETS, self)
        self.graph = object()
        self.splits = self
        self.test = self
        self.asked: list[tuple[str, float]] = []

    _costs = {"original": 1.0, "budget_01": 0.6, "budget_02": 0.4, "0.25": 0.3, "0.5": 0.5, "0.75": 0.61}

    def _shares(self, path: Path) -> Any:
        return np.array([1.0, 1, 1, 1]) if path.parent.name == "sound" else np.array([1.0, 1, 1, 0])

    def _uniform(self, network: str, width: float, images: int) -> tuple[Any, int]:
        self.asked.append((network, width))
        return np.array([1.0, 1, 0, 0]), images

    def _row(self, budget: str, network: str, shares: Any, *rest: Any) -> dict[str, Any]:
        return {"budget": budget, "network": network, "score": 100 * shares.mean(), "rest": rest}


def of(rows: Iterator[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row["budget"], row["network"]) for row in rows]


def test_a_rival_is_no_faster_than_the_subnet_and_known_rows_are_not_made_again() -> None:
    made = Fixed()
    rows = list(made.rows(set()))
    assert [row["score"] for row in rows] == [100, 75, 50, 50, 50, 50, 75, 50, 50, 50, 50]
    widths = {(row["budget"], row["network"]): row["rest"][0] for row in rows}
    assert widths["60%", comparison.SLICED] == 0.75
    assert widths["60%", comparison.SLICED + comparison.KEPT] == 0.5
    assert sorted(made.asked) == sorted(
        (kind, width) for kind in (comparison.SLICED, comparison.SCRATCH) for width in (0.75, 0.5)
    )
    again = Fixed()
    assert of(again.rows({("60%", comparison.SLICED), ("", comparison.ORIGINAL)})) == [
        pair for pair in of(iter(rows)) if pair not in {("60%", comparison.SLICED), ("", comparison.ORIGINAL)}
    ]
    assert (comparison.SLICED, 0.75) not in again.asked


def test_sorting_all_channels_changes_no_output_and_uniform_slices_keep_those_that_are_read_most(folder: Path) -> None:
    torch.manual_seed(0)
    net = compiled("motion", folder)
    found = comparison.sorted_channels(net.original)
    signals = torch.randn(2, *net.input_shape[1:])
    before, after = (comparison.AsGiven(graph).eval()(signals) for graph in (net.original, found))
    assert torch.allclose(before, after, atol=1e-5)
    (last,) = (node.inputs[1] for node in found.nodes if node.kind == "Gemm")
    read = {graph is found: np.abs(graph.weights[last]).sum(0) for graph in (net.original, found)}
    assert sorted(read[True]) == pytest.approx(sorted(read[False]))
    assert not np.array_equal(read[True], read[False])
