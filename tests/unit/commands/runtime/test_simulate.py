"""``autotailor runtime simulate``, as a person runs it."""

import json
from pathlib import Path

import numpy as np
import pytest

from autotailor.__main__ import main
from pools import early_pool
from served import serve_binary


@pytest.fixture(scope="module")
def exits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder ``exits`` of a run: a pool of one member, and what its two exits answer."""
    serve_binary()
    folder = tmp_path_factory.mktemp("run") / "exits"
    early_pool(folder / "pool")
    (folder / "early").mkdir()
    sure = np.linspace(0, 1, 100)
    right = np.stack([sure > 0.5, sure > 0.5, sure >= 0], axis=1).astype(float)
    np.savez(folder / "early" / "answers.npz", validation_confidence=np.stack([sure, sure], 1), validation_right=right)
    return folder


def test_it_says_what_each_passage_comes_to(exits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["runtime", "simulate", str(exits), "--hard", "0,1", "--thresholds", "60 %", "--pictures", "50"]
    assert main([*asked, "--json"]) == 0
    easy, hard, whole = json.loads(capsys.readouterr().out)["passages"]
    assert (easy["accuracy"], hard["accuracy"], whole["pictures"]) == (1.0, 0.0, 100)
    assert easy["exits"] == [{"member": "early", "exit": "stage2", "share": 1.0}]
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert "a deadline of 0.75 ms" in said
    assert "early stage2 100%" in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--hard", "much"), "expected numbers with commas"),
        (("--slowdown", "1,2"), "one for each of the 3 passages"),
        (("--thresholds", "70 %"), "the pool has those of 60%, guaranteed, late"),
        (("--pictures", "0"), "expected pictures"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(
    exits: Path, options: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runtime", "simulate", str(exits), *options]) == 1
    assert words in capsys.readouterr().err
