"""The example of the guide to own data."""

from pathlib import Path

import numpy as np
import pytest
import yaml

import documents
from autotailor import config, data


def test_the_example_of_a_dataset_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {block.title: block.code for block in documents.blocks(documents.ROOT / "docs" / "guides" / "own-data.md")}
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine.py").write_text(found["mine.py"])
    (tmp_path / "conf").symlink_to(documents.ROOT / "conf")
    random = np.random.default_rng(0)
    (tmp_path / "signs").mkdir()
    for part, count in (("train", 20), ("test", 6)):
        images = random.integers(0, 255, (count, 18, 18, 3), dtype=np.uint8)
        np.savez(tmp_path / "signs" / f"{part}.npz", images=images, labels=np.arange(count) % 2)
    section = {**yaml.safe_load(found["conf/data/mine.yaml"]), "kind": "source", "resolution": 16}
    assert section.pop("defaults") == ["source", "_self_"]
    assert "source" in config.options(documents.ROOT / "conf", "data")
    splits = data.load(section)
    assert data.classes(section) == ("stop", "yield")
    assert [len(part) for part in (splits.train, splits.validation, splits.test)] == [18, 2, 6]
