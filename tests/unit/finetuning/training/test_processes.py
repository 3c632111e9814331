"""Two processes train as one does; what interrupts one of them interrupts both, and they go on in the same bits."""

import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import team_work
import together
from training import close, equal

Train = Callable[..., Any]


@pytest.fixture(scope="module")
def finetuned(tmp_path_factory: pytest.TempPathFactory) -> Train:
    """The training of a SuperNet."""
    return partial(team_work.finetuned, team_work.compiled(tmp_path_factory.mktemp("compiled")))


@pytest.fixture(scope="module")
def polished(tmp_path_factory: pytest.TempPathFactory) -> Train:
    """The race of SubNets with weights of their own."""
    return partial(team_work.polished, team_work.compiled(tmp_path_factory.mktemp("to_polish")))


@pytest.fixture(scope="module", params=["pretrain", "finetune"])
def train(request: pytest.FixtureRequest) -> Train:
    """A kind of training."""
    if request.param == "pretrain":
        return team_work.pretrained
    found: Train = request.getfixturevalue("finetuned")
    return found


@pytest.fixture(scope="module")
def both(train: Train, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Weights, history and metrics of two processes. Without common statistics they are 0.2 off and more."""
    first, second = together.results(train, tmp_path_factory.mktemp("both"), 2)
    assert equal(first[0], second[0])
    assert first[1:] == second[1:]
    return first


def test_two_processes_give_the_curve_of_one(train: Train, both: Any, tmp_path: Path) -> None:
    weights, history, metrics = train(tmp_path, 1)
    assert len(both[1]) == len(history)
    for found, expected in zip(both[1], history, strict=True):
        assert found == pytest.approx(expected, abs=5.1)  # accuracies move by single images of 40
        assert found["loss"] == pytest.approx(expected["loss"], rel=2e-4)  # AdamW divides gradients by their size
    # Shifts begin at zero: six steps of AdamW leave them small, and processors that round otherwise 0.03 apart.
    assert max(distance(both[0][name], weight) for name, weight in weights.items()) < 0.05
    assert both[2]["images"] == metrics["images"]


def test_the_largest_subnet_teaches_two_processes_as_it_teaches_one(finetuned: Train, tmp_path: Path) -> None:
    """The pass of the largest SubNet as teacher normalises with the whole batch, too."""
    taught = partial(finetuned, teacher="largest", strategy="uniform", epochs=1, subnets=2)
    (_, history, _), second = together.results(taught, tmp_path / "both", 2)
    assert second[1] == history
    alone = taught(tmp_path / "one", 1)[1]
    assert history[0]["loss"] == pytest.approx(alone[0]["loss"], rel=2e-4)


def test_two_processes_take_the_same_steps_of_muon_on_what_they_have_trained(finetuned: Train, tmp_path: Path) -> None:
    """Each step trains one SubNet, so that Muon works on parts of weights; on whole weights they end 0.018 apart."""
    by_muon = partial(finetuned, optimizer="muon", strategy="uniform", epochs=1, subnets=1)
    first, second = together.results(by_muon, tmp_path / "both", 2)
    assert equal(first[0], second[0])
    weights, history, _ = by_muon(tmp_path / "one", 1)
    assert first[1][0]["loss"] == pytest.approx(history[0]["loss"], rel=2e-3)
    matrices = {name: weight for name, weight in weights.items() if weight.ndim > 1}
    assert max(distance(first[0][name], weight) for name, weight in matrices.items()) < 2e-3


def distance(a: torch.Tensor, b: torch.Tensor) -> float:
    """Norm of a difference, as a share of the norm."""
    return float((a - b).float().norm() / b.float().norm().clamp_min(1e-9))


def test_a_killed_process_ends_both_and_they_go_on_in_the_same_bits(train: Train, both: Any, tmp_path: Path) -> None:
    at = (1, int(torch.randint(0, 3, ())))
    survivor, killed = together.run(train, tmp_path, 2, team_work.data(at, rank=1))
    assert killed.status == -signal.SIGKILL
    assert survivor.result[0] == "PeerLostError"
    assert "another process of the training has ended" in survivor.result[1]
    again = together.results(train, tmp_path, 2)
    assert equal(again[0][0], both[0])
    assert again[0][1] == both[1]


def test_a_terminated_process_stops_both_at_one_step(both: Any, train: Train, tmp_path: Path) -> None:
    ended = together.results(train, tmp_path, 2, team_work.data((1, 1), rank=1, number=signal.SIGTERM))
    assert [each[0] for each in ended] == ["SystemExit", "SystemExit"]
    (checkpoint,) = (path for path in tmp_path.glob("*.ckpt") if path.name.count(".") == 1)
    position = torch.load(checkpoint)["state"]["position"]
    assert (position["epoch"], position["batch"]) == (1, 2)  # the step with the batch is finished
    again = together.results(train, tmp_path, 2)
    assert equal(again[1][0], both[0])


def test_no_terminated_process_ends_before_the_checkpoint_is_written(tmp_path: Path) -> None:
    assert together.results(team_work.left_by_terminated, tmp_path, 2) == [True, True]


def test_another_number_of_processes_begins_anew(tmp_path: Path) -> None:
    first, _ = together.results(team_work.pretrained, tmp_path, 2)
    assert equal(first[0], together.results(team_work.pretrained, tmp_path, 2)[1][0])
    alone = team_work.pretrained(tmp_path, 1)
    assert not equal(alone[0], first[0])
    assert close(alone[0], first[0])


def test_two_processes_polish_as_one_does(polished: Train, tmp_path: Path) -> None:
    first, second = together.results(polished, tmp_path / "both", 2)
    assert equal(first[0], second[0])
    assert first[2] == second[2]
    weights, _, table = polished(tmp_path / "one", 1)
    assert table["subnet"] == first[2]["subnet"]
    assert table["images"] == first[2]["images"]
    for column in ("accuracy_before", "accuracy_validation"):
        assert first[2][column] == pytest.approx(table[column], abs=2.6)  # accuracies move by single images of 40
    assert max(distance(first[0][name], weight) for name, weight in weights.items()) < 1e-3
    apart = together.results(partial(polished, sync_batch_norm=False), tmp_path / "apart", 2)[0][0]
    assert max(distance(apart[name], weight) for name, weight in weights.items()) > 0.1


def test_a_subnet_whose_loss_is_no_number_in_one_process_takes_no_step_in_any() -> None:
    expected = team_work.broken(1, breaks=False)
    for has_step, losses in together.results(team_work.broken, 2):
        assert has_step == [True, False]
        assert losses == [True, True]
    assert expected == ([True, True], [True])


def test_a_killed_process_ends_both_that_polish_and_they_go_on_in_the_same_bits(
    polished: Train, tmp_path: Path
) -> None:
    whole = together.results(polished, tmp_path / "whole", 2)[0]
    at = (10_001, int(torch.randint(0, 3, ())))  # in the second round
    survivor, killed = together.run(polished, tmp_path / "killed", 2, team_work.data(at, rank=1))
    assert killed.status == -signal.SIGKILL
    assert survivor.result[0] == "PeerLostError"
    again = together.results(polished, tmp_path / "killed", 2)
    assert equal(again[0][0], whole[0])
    assert again[1][2] == whole[2]
