import logging
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import autotailor
import tiny_data
from autotailor import finetuning
from autotailor.accuracy.fingerprint import fingerprint
from autotailor.data import DataSplits
from autotailor.finetuning import FinetuneConfig, TrainingError, panel
from autotailor.finetuning.config import PanelConfig, WatchConfig
from autotailor.finetuning.training.states.checkpoint import Checkpoint
from autotailor.finetuning.training.watch import Accuracies, Watch
from training import PRETRAIN, equal, fresh

BEST = replace(PRETRAIN, epochs=5, keep="best", panel=WatchConfig(every=1))
SCORES = {0: 10.0, 1: 40.0, 2: 20.0, 3: 40.0, 4: 30.0}  # the second epoch is the first that is best


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


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> dict[int, dict[str, torch.Tensor]]:
    """The states of networks by epoch; the score of each is that of ``SCORES``."""
    seen: dict[int, dict[str, torch.Tensor]] = {}

    def accuracies(watch: Watch, network: nn.Module, epoch: int, _: int) -> Accuracies:
        seen[epoch] = {name: value.clone() for name, value in network.state_dict().items()}
        return Accuracies({"validation_accuracy": SCORES[epoch]}, {}, SCORES[epoch])

    monkeypatch.setattr(Watch, "accuracies", accuracies)
    return seen


def test_the_best_state_is_the_first_with_the_highest_score_and_the_last_state_stays_the_checkpoint(
    states: dict[int, dict[str, torch.Tensor]], tiny: DataSplits, tmp_path: Path
) -> None:
    result = finetuning.pretrain(fresh(), tiny, BEST, tmp_path)
    assert equal(result.state_dict, states[1])
    assert not equal(result.state_dict, states[4])
    assert equal(torch.load(tmp_path / "pretrain.ckpt")["state"]["module"], states[4])


def test_the_last_state_is_kept_unless_the_best_is_asked_for(
    states: dict[int, dict[str, torch.Tensor]], tiny: DataSplits, tmp_path: Path
) -> None:
    result = finetuning.pretrain(fresh(), tiny, replace(BEST, keep="last"), tmp_path)
    assert equal(result.state_dict, states[4])
    again = finetuning.pretrain(fresh(), tiny_data.splits(fail_at=(0, 0)), BEST, tmp_path)  # nothing is trained again
    assert equal(again.state_dict, states[1])


def test_where_nothing_was_measured_a_warning_says_that_the_last_state_is_kept(
    tiny: DataSplits, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    last = replace(BEST, epochs=1, keep="last", panel=WatchConfig(every=0))
    before = finetuning.pretrain(fresh(), tiny, last, tmp_path)
    again = finetuning.pretrain(fresh(), tiny, replace(BEST, epochs=1), tmp_path)
    assert equal(before.state_dict, again.state_dict)
    assert f"its last state is kept; remove {tmp_path / 'pretrain.ckpt'}" in caplog.text
    caplog.clear()
    finetuning.pretrain(fresh(), tiny, replace(BEST, epochs=0), tmp_path / "untrained")
    assert not caplog.text


@pytest.mark.parametrize("at", [(1, 1), (2, 0), (4, 2)], ids=str)
def test_an_interrupted_training_keeps_the_same_state(
    at: tuple[int, int],
    states: dict[int, dict[str, torch.Tensor]],
    tiny: DataSplits,
    tmp_path: Path,
) -> None:
    with pytest.raises(KeyboardInterrupt):
        finetuning.pretrain(fresh(), tiny_data.splits(fail_at=at), BEST, tmp_path)
    result = finetuning.pretrain(fresh(), tiny, BEST, tmp_path)
    assert equal(result.state_dict, states[1])


def test_a_killed_training_that_had_written_a_better_state_than_its_checkpoint_writes_it_again(
    states: dict[int, dict[str, torch.Tensor]], tiny: DataSplits, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        finetuning.pretrain(fresh(), tiny_data.splits(fail_at=(1, 0)), BEST, tmp_path)
    before = (tmp_path / "pretrain.ckpt").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        finetuning.pretrain(fresh(), tiny_data.splits(fail_at=(2, 0)), BEST, tmp_path)
    (tmp_path / "pretrain.ckpt").write_bytes(before)
    assert equal(finetuning.pretrain(fresh(), tiny, BEST, tmp_path).state_dict, states[1])


def test_the_best_state_of_a_supernet_is_chosen_by_the_mean_of_the_panel(
    plain_net: autotailor.SuperNet,
    tiny: DataSplits,
    finetune_config: FinetuneConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    means = iter([60.0, 50.0])
    monkeypatch.setattr(panel, "fmean", lambda _: next(means))
    config = replace(finetune_config, keep="best", panel=PanelConfig(every=1, images=10, subnets=1))
    result = finetuning.finetune(plain_net, tiny, config, tmp_path)
    assert [row["panel_accuracy"] for row in result.history] == [60.0, 50.0]
    kept = torch.load(tmp_path / "finetune.best.ckpt")["state"]
    module = result.net.module(logits=True)
    assert kept["epoch"] == 0
    assert all(torch.equal(value, kept["module"][name]) for name, value in module.named_parameters())


def test_the_best_state_needs_accuracies_to_choose_by() -> None:
    with pytest.raises(TrainingError, match=r"panel\.every"):
        replace(BEST, panel=WatchConfig(every=0))
    with pytest.raises(TrainingError, match="known are last, best"):
        FinetuneConfig(epochs=1, keep="first")
