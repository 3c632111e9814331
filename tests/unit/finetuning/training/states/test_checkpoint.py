from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch

from autotailor.accuracy.fingerprint import fingerprint
from autotailor.finetuning.training.states.checkpoint import Checkpoint


def test_what_is_written_is_read(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "deep" / "c.ckpt", "a")
    assert checkpoint.read() is None
    checkpoint.write({"weights": torch.arange(3), "position": {"epoch": 2}})
    state = checkpoint.read()
    assert state is not None
    assert state["position"] == {"epoch": 2}
    assert torch.equal(state["weights"], torch.arange(3))
    assert [path.name for path in checkpoint.path.parent.iterdir()] == ["c.ckpt"]


def test_another_runs_checkpoint_is_left_aside_aloud(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Checkpoint(tmp_path / "c", "a").write({})
    with caplog.at_level(logging.WARNING):
        assert Checkpoint(tmp_path / "c", "b").read() is None
    assert "another configuration" in caplog.text


@pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04"])
def test_a_damaged_checkpoint_is_left_aside_aloud(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    (tmp_path / "c").write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert Checkpoint(tmp_path / "c", "a").read() is None
    assert "cannot be read" in caplog.text


def test_a_failed_write_keeps_the_former_state(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "c", "a")
    checkpoint.write({"epoch": 1})
    with pytest.raises(Exception, match="pickle"):
        checkpoint.write({"epoch": lambda: None})
    assert checkpoint.read() == {"epoch": 1}


def test_fingerprints_tell_texts_names_shapes_and_values_apart() -> None:
    weights = {"w": torch.zeros(2, 3)}
    prints = {
        fingerprint(["a"], weights),
        fingerprint(["b"], weights),
        fingerprint(["a"], {"v": torch.zeros(2, 3)}),
        fingerprint(["a"], {"w": torch.zeros(3, 2)}),
        fingerprint(["a"], {"w": torch.ones(2, 3)}),
    }
    assert len(prints) == 5
    channels_last = {"w": torch.zeros(1, 2, 3, 4).to(memory_format=torch.channels_last)}
    assert fingerprint([], channels_last) == fingerprint([], {"w": torch.zeros(1, 2, 3, 4)})


def test_a_checkpoint_of_another_version_of_training_is_left_aside_aloud(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = Checkpoint(tmp_path / "c", "a")
    checkpoint.write({"epoch": 1})
    monkeypatch.setattr("autotailor.finetuning.training.states.checkpoint.FORMAT", 99)
    with caplog.at_level(logging.WARNING):
        assert checkpoint.read() is None
    assert "another version of training" in caplog.text


def test_a_checkpoint_of_another_pytorch_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = Checkpoint(tmp_path / "c", "a")
    checkpoint.write({"epoch": 1})
    monkeypatch.setattr(torch, "__version__", "99.0")
    assert checkpoint.read() == {"epoch": 1}
