"""The common part of the rules' scripts: how a rule ends that a signal interrupts, or that fails."""

import signal
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autotailor.artifacts import Provenance
from autotailor.progress import read_record, record_of

SCRIPTS = Path(__file__).parents[2] / "workflow" / "scripts"


class Outputs(list[str]):
    """As Snakemake's: a list with names."""

    provenance = "results/m/provenance/report.json"


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The module ``stage`` without MLflow, work folder and log."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.chdir(tmp_path)
    import stage

    monkeypatch.setattr(stage, "_follow_snakemake", lambda: None)
    monkeypatch.setattr(stage, "interrupt_once", lambda: None)
    monkeypatch.setattr(stage.logs, "send_to", lambda path: None)
    monkeypatch.setattr(stage, "_child", lambda snakemake: nullcontext(SimpleNamespace()))
    monkeypatch.setattr(stage.tracking, "watched", nullcontext)
    begun = SimpleNamespace(begin=dict, folder=tmp_path, code={})
    monkeypatch.setattr(stage, "_work", lambda *_, is_training: begun)
    yield stage
    del sys.modules["stage"]


@pytest.mark.parametrize(
    ("end", "status", "outcome"),
    [
        (KeyboardInterrupt(), 128 + signal.SIGINT, "stopped"),
        (SystemExit(128 + signal.SIGTERM), 128 + signal.SIGTERM, "stopped"),
        (SystemExit(1), 1, "failed"),
        (RuntimeError("broken"), 1, "failed"),
    ],
    ids=["SIGINT", "SIGTERM", "exit", "error"],
)
def test_a_rule_that_a_signal_ends_was_stopped_and_has_not_failed(
    end: BaseException, status: int, outcome: str, scripts: Any
) -> None:
    log = "logs/m/report.log"
    job = SimpleNamespace(
        params=SimpleNamespace(sections={}), rule="report", log=[log], input=[], output=Outputs(), wildcards={}
    )
    with pytest.raises(SystemExit) as ended, scripts.stage(job):
        raise end
    record = read_record(record_of(log))
    assert record is not None
    assert (ended.value.code, record.outcome) == (status, outcome)


FINETUNE = {"epochs": 2, "lr": 0.1, "workers": 1, "checkpoint_seconds": 300.0, "spike": 0.0, "accept_chance": False}


@pytest.mark.parametrize(
    ("changed", "goes_on"),
    [
        ({"finetune": {"workers": 8, "checkpoint_seconds": 5.0, "spike": 9.0, "accept_chance": True}}, True),
        ({"data": {"workers": 4, "cache": "auto"}}, True),
        ({"data": {"root": "elsewhere"}}, True),
        ({"data": {"seed": 1}}, False),
        ({"finetune": {"lr": 0.2}}, False),
        ({"data": {"resolution": 64}}, False),
        ({"network": {"workers": 2}}, False),
    ],
)
def test_a_training_goes_on_where_a_parameter_changes_that_does_not_influence_it(
    changed: dict[str, dict[str, Any]], goes_on: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import stage

    def folder(sections: dict[str, Any]) -> Path:
        config = {"tracking": {"root": str(Path(__file__).parents[2])}}
        job = SimpleNamespace(config=config, wildcards={"model": "m"}, params=SimpleNamespace(sections=sections))
        provenance = Provenance("finetune", sections, [])
        found: Path = stage._work(job, provenance, is_training=True).folder
        return found

    data = {"name": "mine", "kind": "folder", "root": "photos", "resolution": 32, "workers": 0}
    before: dict[str, Any] = {"data": data, "finetune": FINETUNE, "network": {}, "threads": 1}
    after = before | {name: before[name] | keys for name, keys in changed.items()}
    assert (folder(after) == folder(before)) == goes_on
    del sys.modules["stage"]
