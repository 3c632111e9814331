"""``autotailor runtime search``: from a load under which nothing fits to a server that meets its deadline again."""

import json
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotailor
import finished_runs
from autotailor import artifacts, data
from autotailor.__main__ import main
from autotailor.accuracy import CalibrationConfig, Calibrator, evaluate
from autotailor.commands.runtime import search
from autotailor.pool import making
from autotailor.pool.config import PoolConfig
from autotailor.pool.replacing import held
from autotailor.runs.folder import OF_DEVICE, OF_MODEL
from autotailor.serving import Client, Flag
from autotailor.serving.files import CLASSES, open_pool
from pools import tiny_pool
from served import Serving, serve_command

IMAGE = np.zeros((3, 32, 32), np.float32)
LOAD = np.array([2.0, 3.0, 2.0])
"""Slowdowns of compute, memory and fixed costs that all inferences of the test have."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run whose pool lacks the fast half of the front."""
    folder = finished_runs.make(tmp_path_factory.mktemp("run"))
    opened = autotailor.open_run(folder)
    assert opened.lut is not None
    assert opened.device is not None
    front = opened.pareto.take(np.arange(len(opened.pareto) // 2, len(opened.pareto)))
    run = making.Run(opened.net, front, opened.accuracy, {}, opened.lut, opened.device)
    splits, module = data.load(opened.configuration["data"]), opened.net.module().eval()
    work, config = folder / "members", PoolConfig(members=2, rounds=0)
    export = making.exporter(opened.net, module, splits, CalibrationConfig(images=32), work)
    origin = making.origin_of("resnet_digits", opened.device, config)
    making.make_pool(folder / "pool", run, origin, config, export, None)
    return folder


@pytest.fixture
def served(folder: Path) -> Iterator[Serving]:
    """A server of the pool, which no member fits: it asks for a search after six seconds."""
    with Serving(serve_command("host"), folder / "pool", "--deadline-ms", "1e-5", "--long-s", "6") as server:
        yield server


@pytest.fixture
def loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> float:
    """Lets servers tell of a load that the test decides, and of a deadline that no member meets under it."""
    fastest = open_pool(folder / "pool").index.members[0]
    deadline = 0.9 * float(LOAD @ fastest.split_ms)
    slowdowns = {f"slowdown_{name}": slowdown for name, slowdown in zip(CLASSES, LOAD.tolist(), strict=True)}
    known = {**slowdowns, "slowdown": 2.0, "waiting": 0.0, "forecast": 1.0, "quantile": 1.0}
    status = Client.status

    def told(client: Client) -> dict[str, Any]:
        found = status(client)
        return found | {"load": known, "settings": found["settings"] | {"deadline_ms": deadline}}

    monkeypatch.setattr(Client, "status", told)
    return deadline


def test_a_load_that_nothing_fits_ends_with_members_that_fit(
    folder: Path,
    served: Serving,
    loaded: float,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(search, "LOOK_S", 0.1)
    at, is_over, failed = str(served.path), threading.Event(), []

    def ask() -> None:
        with Client(at) as client:
            while not is_over.wait(0.02):
                try:
                    client.infer(IMAGE)
                except Exception as error:  # the test fails with it
                    failed.append(error)

    with Client(at) as client:
        assert Flag.NOTHING_FITS in client.infer(IMAGE).flags
        asking = threading.Thread(target=ask)
        asking.start()
        assert main(["runtime", "search", str(folder), "--at", at, "--members", "2", "--wait"]) == 0
        is_over.set()
        asking.join()
        client.set(deadline_ms=1e4)
        while (reply := client.infer(IMAGE)).flags != Flag(0):  # until a member that fits is prepared, and runs
            pass
        status = client.status()
    said = capsys.readouterr().out
    assert "waiting until no member of the pool has fitted for a minute" in said
    assert f"the server has loaded 4 members of {folder / 'pool'}" in said
    assert failed == []
    members = open_pool(folder / "pool").index.members
    assert [each["name"] for each in status["members"]] == [member.name for member in members]
    assert reply.member == int(np.argmax([member.accuracy for member in members]))
    assert sum(float(LOAD @ member.split_ms) <= loaded for member in members) == 2
    document = json.loads((folder / "pool" / "pool.json").read_text())
    assert {member["accuracy"]["from"] for member in document["members"]} == {"evaluation"}
    added = document["searched_under_load"]
    assert [len(each["subnets"]) for each in added] == [2]
    assert not status["wants_search"]
    assert not list(folder.glob(f"*{search.WORK}"))


def test_where_no_subnet_fits_the_pool_stays(folder: Path, served: Serving, capsys: pytest.CaptureFixture[str]) -> None:
    before = (folder / "pool" / "pool.txt").read_bytes()
    with Client(str(served.path)) as client:
        client.set(deadline_ms=1e-4)
        client.infer(IMAGE)
        assert main(["runtime", "search", str(folder), "--at", str(served.path)]) == 1
        assert client.infer(IMAGE).flags == Flag.NOTHING_FITS | Flag.LATE
    assert "no SubNet of the space is expected to take at most" in (said := capsys.readouterr().err)
    assert "raise the deadline to" in said
    assert (folder / "pool" / "pool.txt").read_bytes() == before


def test_the_server_of_another_run_is_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = tiny_pool(tmp_path / "pool")
    with Serving(serve_command("host"), pool.folder) as server:
        assert main(["runtime", "search", str(folder), "--at", str(server.path)]) == 1
    text = "the server serves tiny on host, and the run is of resnet_digits on host: name the run of the pool"
    assert text in capsys.readouterr().err


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    """A copy of the run, which a test may change."""
    shutil.copytree(folder.parents[2], tmp_path / "root")
    return tmp_path / "root" / folder.relative_to(folder.parents[2])


def path_of(folder: Path, name: str) -> Path:
    return (folder.parent if name in OF_MODEL else folder) / name


def test_a_search_reads_no_other_artifacts_of_the_run_than_it_demands(
    copied: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in {*OF_MODEL, *OF_DEVICE} - {*search.READ}:
        path_of(copied, name).unlink()
    deadline = 2.0 * open_pool(copied / "pool").index.members[-1].latency_ms
    with Serving(serve_command("host"), copied / "pool", "--deadline-ms", str(deadline)) as server:
        assert main(["runtime", "search", str(copied), "--at", str(server.path), "--members", "9"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("under load: compute 1.00")
    count = len(open_pool(copied / "pool").index.members)
    assert said[-1] == f"the server has loaded {count} members of {copied / 'pool'}"


@pytest.mark.parametrize("name", search.READ)
def test_an_artifact_that_a_search_reads_and_lacks_is_named(
    name: str, copied: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path_of(copied, name).unlink()
    assert main(["runtime", "search", str(copied), "--at", str(tmp_path / "s")]) == 1
    said = capsys.readouterr().err
    assert f"the run is not finished, because {name} (of rule {({**OF_MODEL, **OF_DEVICE})[name]}) is missing" in said


def test_pictures_without_labels_need_the_original_network(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (copied.parent / "compiled.pt").unlink()
    assert search.open_for_search(copied).folder.model == "resnet_digits"
    monkeypatch.setattr("autotailor.data.labels.has_labels", lambda section: False)
    with pytest.raises(autotailor.runs.RunError, match=r"compiled\.pt \(of rule compile\) is missing"):
        search.open_for_search(copied)


@pytest.mark.parametrize("content", ["", "{", '{"schema_version": 1}', '{"schema_version": 9, "members": []}', "[]"])
def test_a_damaged_document_of_the_pool_is_told_before_the_server_is_asked(
    content: str, copied: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (copied / "pool" / "pool.json").write_text(content)
    assert main(["runtime", "search", str(copied), "--at", str(tmp_path / "s")]) == 1
    assert "is cut, changed, or of another version; make the pool anew with the rule pool" in capsys.readouterr().err


@pytest.mark.parametrize("count", ["0", "-3"])
def test_a_senseless_number_of_members_is_refused(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "search", "nowhere", "--members", count]) == 1
    assert f"--members {count}: expected how many members may be added, 1 or more" in capsys.readouterr().err


def test_a_search_on_a_pool_that_is_being_replaced_is_refused_and_told_who_is_at_work(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = folder / "pool"
    with held(pool.resolve()):
        assert main(["runtime", "search", str(folder), "--at", str(tmp_path / "s")]) == 1
    said = capsys.readouterr().err
    assert f"{pool}: is being made or extended by process {os.getpid()} of " in said
    assert "wait until it is done, or end it" in said
    with held(pool.resolve()):
        pass


def test_a_pool_is_not_made_while_a_search_extends_it(
    folder: Path, served: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule tries within the search, which is the only moment at which both are surely at work."""
    tried: list[str] = []
    opened = autotailor.open_run(folder)
    known = search.known_of(opened)
    monkeypatch.setattr(making, "WAIT_S", 0.0)

    def at_work(*_: object) -> int:
        config = PoolConfig(members=2, rounds=0)
        origin = making.origin_of("resnet_digits", known.device, config)
        with pytest.raises(autotailor.AutoTailorError) as found:
            making.make_pool(folder / "pool", replace(known, front=opened.pareto), origin, config, no_export, None)
        tried.append(str(found.value))
        return len(open_pool(folder / "pool").index.members)

    def no_export(subnet: object) -> object:
        raise AssertionError("the rule has begun to make the pool")

    monkeypatch.setattr(search, "add_members", at_work)
    assert main(["runtime", "search", str(folder), "--at", str(served.path)]) == 0
    assert len(tried) == 1
    assert f"is being made or extended by process {os.getpid()} of " in tried[0]


def test_a_folder_that_is_no_pool_is_not_locked(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runtime", "search", str(folder), "--pool", str(tmp_path / "pool")]) == 1
    assert f"{tmp_path / 'pool'}: is no folder; name the folder of a pool" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_server_with_another_number_of_members_is_refused_before_the_search(
    folder: Path, copied: Path, served: Serving, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads((copied / "pool" / "pool.json").read_text())
    document["members"].pop()
    (copied / "pool" / "pool.json").write_text(json.dumps(document))
    assert main(["runtime", "search", str(folder), "--pool", str(copied / "pool"), "--at", str(served.path)]) == 1
    assert "name the folder that it serves with --pool" in capsys.readouterr().err


@pytest.fixture
def trained(copied: Path) -> Path:
    """A copy of the run, whose pool has weights that were trained on for its members."""
    opened = autotailor.open_run(copied)
    weights = {name: 0.9 * array if array.ndim == 4 else array for name, array in opened.net.graph.weights.items()}
    net = opened.net.with_weights(weights)
    net.save(copied / "pool_supernet.pt")
    inputs = [copied.parent / "supernet.pt", copied / "pareto.csv"]
    artifacts.write_json(copied / "pool_training.json", {"is_better": True, "images": 7})
    record = artifacts.Provenance("train_pool", {}, inputs)
    outputs = [copied / "pool_supernet.pt", copied / "pool_training.json"]
    record.write(copied / "provenance" / "train_pool.json", outputs)
    training = artifacts.read_json(copied / "pool_training.json")
    known = search.known_of(opened, training)
    assert (known.net.graph.weights.keys(), known.evaluated) == (weights.keys(), {})
    splits, config = data.load(opened.configuration["data"]), PoolConfig(members=2, rounds=0)
    module, front = net.module().eval(), opened.pareto.take(np.arange(len(opened.pareto) // 2, len(opened.pareto)))
    export = making.exporter(net, module, splits, CalibrationConfig(images=32), copied / "members")
    origin = making.origin_of("resnet_digits", known.device, config)
    making.make_pool(copied / "pool", replace(known, front=front), origin, config, export, None)
    return copied


def test_new_members_have_the_weights_that_were_trained_on_for_the_pool(trained: Path, tmp_path: Path) -> None:
    """Their accuracies are those of these weights, too, and not what the run knows of its own."""
    deadline = 2.0 * open_pool(trained / "pool").index.members[-1].latency_ms
    with Serving(serve_command("host"), trained / "pool", "--deadline-ms", str(deadline)) as server:
        assert main(["runtime", "search", str(trained), "--at", str(server.path), "--members", "3"]) == 0
    document = json.loads((trained / "pool" / "pool.json").read_text())
    assert document["training"] == artifacts.read_json(trained / "pool_training.json")
    assert {member["weights"] for member in document["members"]} == {"joint"}
    opened = autotailor.open_run(trained)
    net, splits = autotailor.load(trained / "pool_supernet.pt"), data.load(opened.configuration["data"])
    calibrator = Calibrator(splits, CalibrationConfig.from_section(opened.configuration["finetune"]["calibration"]))
    added = [each for each in document["members"] if each["subnet"] in document["searched_under_load"][0]["subnets"]]
    module = net.module().eval()
    for each in added:
        subnet = autotailor.SubNet.from_assignment(net.space, each["assignment"])
        right = evaluate(module, subnet, splits.validation, calibrator.statistics(module, subnet)).values
        assert each["accuracy"]["value"] == pytest.approx(100 * right.mean())
        assert each["verification"]["max_relative_error"] < 1e-4
    assert added


def test_the_supernet_of_a_trained_pool_is_named_where_it_is_missing(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (trained / "pool_supernet.pt").unlink()
    assert main(["runtime", "search", str(trained), "--at", str(tmp_path / "s")]) == 1
    said = capsys.readouterr().err
    assert "because pool_supernet.pt (of rule train_pool) is missing" in said
    assert "`autotailor run model=resnet_digits device=host -- pool --forcerun train_pool`" in said


def test_a_pool_is_not_extended_with_weights_of_another_training(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The members were trained anew, and the rule ``make_pool`` has not run since."""
    record = json.loads((trained / "provenance" / "train_pool.json").read_text())
    artifacts.write_json(trained / "pool_training.json", {"is_better": True, "images": 8})
    record["outputs"]["pool_training.json"] = artifacts.file_digest(trained / "pool_training.json")
    (trained / "provenance" / "train_pool.json").write_text(json.dumps(record))
    before = (trained / "pool" / "pool.json").read_bytes()
    assert main(["runtime", "search", str(trained), "--at", str(tmp_path / "s")]) == 1
    said = capsys.readouterr().err
    assert f"{trained / 'pool'}: its members have the weights of another training than {trained}" in said
    assert "make the pool anew with the rule pool" in said
    assert (trained / "pool" / "pool.json").read_bytes() == before


def test_a_trained_pool_of_an_older_supernet_is_not_extended(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The SuperNet was trained anew, and the rule ``train_pool`` has not run since."""
    record = json.loads((trained / "provenance" / "train_pool.json").read_text())
    record["inputs"]["supernet.pt"] = "0" * 64
    (trained / "provenance" / "train_pool.json").write_text(json.dumps(record))
    assert main(["runtime", "search", str(trained), "--at", str(tmp_path / "s")]) == 1
    said = capsys.readouterr().err
    assert "rule train_pool has read another supernet.pt than the one that is there now" in said
    assert "`autotailor run model=resnet_digits device=host -- pool`" in said
    assert autotailor.open_run(trained).folder.model == "resnet_digits"  # whoever does not read it may go on


def test_an_interrupted_command_says_so_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(folder: Path, *, is_trained: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "open_for_search", interrupt)
    assert main(["runtime", "search", "nowhere"]) == 130
    assert capsys.readouterr().err.endswith("autotailor: interrupted\n")
