"""Real Snakemake, dry: what it plans, and what it refuses before any rule."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import masked
from autotailor import profiling
from autotailor.ir.feature import OperatorFeature
from autotailor.profiling.device import fingerprint
from forked_snakemake import Done, Snakemake
from picture_files import photo
from stages import STAGES

ROOT = Path(__file__).parents[2]
CODE = Path(".snakemake") / "autotailor" / "code.json"


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snakemake]:
    """The repository, and a process that has imported what a plan needs."""
    with Snakemake(ROOT, tmp_path_factory.mktemp("said")) as run:
        yield run


@pytest.fixture(scope="module")
def parsed(process: Snakemake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of all rules as a plan has parsed it."""
    directory = tmp_path_factory.mktemp("parsed")
    assert process("--directory", str(directory), "-n").code == 0
    return directory / CODE


@pytest.fixture(scope="module")
def snakemake(process: Snakemake, parsed: Path) -> Planner:
    """Plans in the repository."""
    return Planner(process, parsed)


class Planner:
    """Runs Snakemake from the repository on another directory, which need not parse the code of all rules again."""

    def __init__(self, process: Snakemake, parsed: Path) -> None:
        self._process, self._parsed = process, parsed

    def __call__(self, directory: Path, *arguments: str, overrides: list[str] | None = None) -> Done:
        if not (directory / CODE).exists():
            (directory / CODE).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self._parsed, directory / CODE)
        config = [f"overrides={json.dumps(overrides)}"] if overrides else []
        return self._process("--directory", str(directory), *arguments, config=config)


def planned(done: Done) -> dict[str, int]:
    """Rules that a dry run would execute, with their number of jobs."""
    assert done.code == 0, done.said
    jobs = re.findall(r"^(\w+)\s+(\d+)$", done.said, re.MULTILINE)
    return {rule: int(count) for rule, count in jobs if rule in STAGES}


def test_a_list_inside_an_override_needs_no_quotes(snakemake: Planner, tmp_path: Path) -> None:
    done = snakemake(tmp_path, "-n", "--config", "overrides=[model.space.width=[0.5,1.0],seed=3]")
    assert done.code == 0, done.said


def test_a_key_of_the_configuration_behind_config_is_an_override(snakemake: Planner, tmp_path: Path) -> None:
    done = snakemake(tmp_path, "-n", "--config", "finetune.epochs=3", "device=host", "overrides=seed=1,search.seed=2")
    assert done.code == 0, done.said
    (path,) = (tmp_path / ".snakemake" / "autotailor" / "configurations").glob("*")
    found = yaml.safe_load(path.read_text())["configuration"]
    assert (found["finetune"]["epochs"], found["seed"], found["search"]["seed"]) == (3, 1, 2)
    wrong = snakemake(tmp_path, "-n", "--config", "finetune.epoch=3")
    assert wrong.err.splitlines()[-1].startswith("autotailor: override 'finetune.epoch=3': unknown key")


@pytest.fixture(scope="module")
def finished(snakemake: Planner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which every rule seems to have run."""
    directory = tmp_path_factory.mktemp("finished")
    finish(snakemake, directory)
    return directory


def finish(snakemake: Planner, directory: Path, *config: str) -> None:
    """Every rule seems to have run; files that are there stay as they are."""
    arguments = ["--config", *config] if config else []
    summary = snakemake(directory, "--summary", *arguments).out
    for line in summary.splitlines():
        path = directory / line.split("\t")[0]
        if line.startswith("results/") and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(line)
    assert snakemake(directory, "--touch", "--no-hooks", *arguments).code == 0


def test_a_fresh_directory_needs_every_stage(snakemake: Planner, tmp_path: Path) -> None:
    assert planned(snakemake(tmp_path, "-n")) == dict.fromkeys(STAGES, 1)


def test_nothing_to_do_after_a_run(snakemake: Planner, finished: Path) -> None:
    done = snakemake(finished, "-n")
    assert "Nothing to be done" in done.said


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("finetune.epochs=1", "finetune sensitivity validate_accuracy search confirm export measure report"),
        ("profile.max_minutes=9", "profile validate search confirm export measure report"),
        ("device.serial=other", "profile validate search confirm export measure report"),
        ("search.population=10", "search confirm export measure report"),
    ],
)
def test_a_change_reruns_what_depends_on_it(snakemake: Planner, finished: Path, override: str, expected: str) -> None:
    assert set(planned(snakemake(finished, "-n", overrides=[override]))) == set(expected.split())


def test_where_jobs_are_computed_is_no_reason_to_run_them_again(snakemake: Planner, finished: Path) -> None:
    profile = str(ROOT / "profiles" / "slurm")
    assert "Nothing to be done" in snakemake(finished, "-n", "--profile", profile).said
    for command in (["-n", "--config", "cluster=slurm"], ["-n", "--config", "overrides=[cluster.each.cpus=8]"]):
        assert "Nothing to be done" in snakemake(finished, *command).said


def test_jobs_for_a_cluster_are_not_started_on_this_machine(snakemake: Planner, tmp_path: Path) -> None:
    done = snakemake(tmp_path, "--cores", "1", "--config", "cluster=slurm")
    assert done.code == 1
    assert "autotailor: cluster=slurm is for jobs that a cluster runs" in done.err
    assert not (tmp_path / "results").exists()


def missing(done: Done) -> set[str]:
    """The files for which a dry run would execute jobs."""
    return {path for line in re.findall(r"Missing output files: ([^;\n]*)", done.said) for path in line.split(", ")}


MATRIX = ("model=[resnet_digits,mobilenet_digits]", "device=host,macs")


def test_a_matrix_and_its_pairs_share_what_is_finished(snakemake: Planner, finished: Path, tmp_path: Path) -> None:
    """In both directions: what a pair has made alone, the matrix does not make again, and reverse."""
    directory = tmp_path / "matrix"
    shutil.copytree(finished, directory)
    done = snakemake(directory, "-n", "--config", *MATRIX)
    counts = planned(done)
    of_one_model = dict.fromkeys(("pretrain", "compile", "finetune", "sensitivity", "validate_accuracy"), 1)
    on_a_device = dict.fromkeys(("enumerate", "profile", "validate", "confirm"), 1)
    assert counts == of_one_model | on_a_device | {"search": 3, "export": 1, "measure": 1, "report": 1}
    assert re.search(r"^export_2 +2$", done.said, re.MULTILINE)  # whose exports need not be there for ncnn
    assert "results/mobilenet_digits/host/exports/largest/model.ncnn.bin" in missing(done)
    assert not [path for path in missing(done) if path.startswith("results/resnet_digits/host/")]
    finish(snakemake, directory, *MATRIX)
    for pair in (MATRIX, ("model=mobilenet_digits", "device=host"), ("model=resnet_digits", "device=macs")):
        assert "Nothing to be done" in snakemake(directory, "-n", "--config", *pair).said


LOSS = """
def mine(logits, labels, teacher, config):
    return logits.logsumexp(1).mean()
"""


def test_a_loss_of_the_users_lies_in_the_current_folder(snakemake: Planner, tmp_path: Path) -> None:
    (tmp_path / "loss_beside_the_results.py").write_text(LOSS)
    assert planned(snakemake(tmp_path, "-n", overrides=["finetune.loss=loss_beside_the_results:mine"]))
    refused = snakemake(tmp_path, "-n", overrides=["finetune.loss=loss_of_nobody:mine"])
    assert refused.code != 0
    assert "finetune.loss loss_of_nobody:mine: module loss_of_nobody cannot be imported" in refused.said


def table(path: Path, precision: str = "fp16") -> Path:
    """Somebody's LUT of an Orin."""
    device = profiling.DeviceConfig.from_section(
        {"name": "orin", "runtime": "ncnn", "threads": 4, "cores": [4, 5, 6, 7], "precision": precision}
    )
    measured = fingerprint(device, {"cpu": "Cortex-A78AE"}, profiling.open_runtime(device).facts())
    relu = OperatorFeature("Relu", ((1, 8),), ((1, 8),))
    profiling.LUT((profiling.LUTRow(relu, measured.id, 0.1, 0.001, 9),), measured).write(path)
    return path


def test_somebody_elses_lut_needs_no_device(snakemake: Planner, tmp_path: Path) -> None:
    path = table(tmp_path / "lut.csv")
    done = snakemake(tmp_path / "work", "-n", "--config", "device=orin", f"lut={path}")
    assert planned(done) == dict.fromkeys(STAGES, 1)


def test_somebody_elses_lut_must_fit_the_configuration(snakemake: Planner, tmp_path: Path) -> None:
    path = table(tmp_path / "lut.csv", "fp32")
    done = snakemake(tmp_path / "work", "-n", "--config", "device=orin", f"lut={path}")
    assert done.code != 0
    assert "precision 'fp32', not 'fp16'" in done.err
    assert not (tmp_path / "work" / "results").exists()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            ["device=[host,orin]", "lut=lut.csv"],
            "lut=lut.csv is the table of one device, and device names 2: host, orin",
        ),
        (["lut=nowhere.csv"], "nowhere.csv; name a lut.csv that the rule profile has made"),
        (["model=resnet_digts"], "unknown model 'resnet_digts'. Did you mean 'resnet_digits'? Known: convnext_tiny"),
        (['overrides=["device.cores=[4711]"]'], "cores [4711] do not exist here"),
        (["overrides=[finetune.epochs=-1]"], "epochs"),
        (["recipe=quik"], "unknown recipe 'quik'. Did you mean 'quick'?"),
        (["cluster=slrum"], "unknown cluster 'slrum'. Did you mean 'slurm'?"),
        (["cluster=slurm", "overrides=[cluster.rules.finetune.mem_mb=0]"], "cluster.rules.finetune.mem_mb: expected"),
        (["overrides=[measure.seconds=inf]"], "measure.seconds is inf, but has to be a finite number"),
        (["overrides=[model.space.depth=[-1]]"], "model.space.depth: choices [-1] count removed blocks, from 0"),
        (["overrides=[model.space.resolution=[64]]"], "model.space.resolution: [64] must lie between 1 and"),
        (["overrides=[polish.augmentation.magnitude=31]"], "augmentation.magnitude: expected an integer from 0 to 30"),
    ],
)
def test_errors_are_one_message_before_any_rule(
    snakemake: Planner, tmp_path: Path, config: list[str], message: str
) -> None:
    done = snakemake(tmp_path, "--config", *config)
    said = [line for line in done.err.splitlines() if not line.startswith(("Using", "Assuming"))]
    assert done.code != 0
    assert message in said[0]
    assert len(said) == 1
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("folder", ["configurations", "contents"])
def test_a_disk_that_takes_no_file_is_one_message(snakemake: Planner, tmp_path: Path, folder: str) -> None:
    kept = tmp_path / ".snakemake" / "autotailor"
    kept.mkdir(parents=True)
    (kept / folder).symlink_to("/sys")  # in which nobody, root included, can make a file
    done = snakemake(tmp_path, "-n")
    assert done.code != 0
    assert f"autotailor: .snakemake/autotailor/{folder}" in done.err
    assert "cannot be used" in done.err
    assert "Traceback" not in done.err


def test_a_device_that_is_away_is_planned_for_and_refused_before_training(snakemake: Planner, tmp_path: Path) -> None:
    away = ["--config", "device=orin", "overrides=[device.address=127.0.0.1:1]"]
    plan = snakemake(tmp_path, "-n", *away)
    assert planned(plan) == dict.fromkeys(STAGES, 1)
    assert "the run itself would stop here: device orin: no SSH server answers at 127.0.0.1:1" in plan.said
    done = snakemake(tmp_path, "--cores", "1", *away)
    assert done.code == 1
    assert "autotailor: device orin: no SSH server answers at 127.0.0.1:1" in done.err
    assert not (tmp_path / "results").exists()


def test_a_space_that_the_network_lacks_is_refused_before_the_network_is_trained(
    snakemake: Planner, tmp_path: Path
) -> None:
    wide = "overrides=[model.space.blocks.Bottleneck.expand_ratio=[2.0]]"
    done = snakemake(tmp_path, "--cores", "1", "--config", "device=macs", wide)
    assert done.code == 1
    assert "autotailor: space: block1 (Bottleneck) holds weights for expand ratio 0.25 at most; asked for" in done.err
    assert not (tmp_path / "results").exists()


def photos(folder: Path, classes: int = 10) -> Path:
    """A folder of pictures, one subfolder per class."""
    for label in range(classes):
        (folder / f"class{label}").mkdir(parents=True)
        for number in range(3):
            photo(10 * label + number).save(folder / f"class{label}" / f"{number}.jpg")
    return folder


def test_pictures_that_cannot_be_used_are_planned_with_and_refused_before_training(
    snakemake: Planner, tmp_path: Path
) -> None:
    bad = photos(tmp_path / "photos") / "class3" / "1.jpg"
    bad.write_bytes(bad.read_bytes()[:200])
    own = ["data=folder", f"data.root={tmp_path / 'photos'}"]
    assert planned(snakemake(tmp_path / "work", "-n", overrides=own)) == dict.fromkeys(STAGES, 1)
    done = snakemake(tmp_path / "work", "--cores", "1", overrides=own)
    assert done.code == 1
    assert "autotailor: data folder: 1 of 30 pictures cannot be used" in done.err
    assert f"{bad} is cut off or damaged" in done.err
    assert not (tmp_path / "work" / "results").exists()


def test_a_pool_is_planned_where_it_is_asked_for_and_without_what_it_does_not_need(
    snakemake: Planner, tmp_path: Path
) -> None:
    asked = snakemake(tmp_path, "-n", "--config", "device=host", "--", "pool")
    assert set(planned(asked)) == set(STAGES) - {"validate_accuracy", "export", "measure", "report"}
    assert re.search(r"^make_pool +1$", asked.said, re.MULTILINE)
    assert re.search(r"^train_pool +1$", asked.said, re.MULTILINE)
    inherited = snakemake(tmp_path, "-n", "--config", "device=host", "overrides=[pool=inherited]", "--", "pool")
    assert re.search(r"^make_pool +1$", inherited.said, re.MULTILINE)
    assert "train_pool" not in inherited.said
    assert "make_pool" not in snakemake(tmp_path, "-n", "--config", "device=host").said


def test_a_pool_of_a_network_that_returns_maps_is_refused_before_it_is_trained(
    snakemake: Planner, tmp_path: Path
) -> None:
    masked.write_notes(tmp_path / "notes", 30)
    (weights := tmp_path / "weights.pt").touch()
    own = ["data=masks", f"data.root={tmp_path / 'notes'}", "data.labels=false", f"model.weights={weights}"]
    done = snakemake(tmp_path / "work", "pool", "-n", "--config", "device=host", overrides=own)
    assert done.code != 0
    assert "has the task segmentation, and a pool answers with one row of numbers" in done.said
    assert snakemake(tmp_path / "work", "-n", "--config", "device=host", overrides=own).code == 0


@pytest.mark.parametrize("keys", ["members: 4", "{members: 4, slowdown: 4.0, precision: fp32, rounds: 5}"])
def test_an_own_file_of_a_pool_may_leave_keys_out(snakemake: Planner, tmp_path: Path, keys: str) -> None:
    """As one does that was written before the members of a pool were trained."""
    own = tmp_path / "conf" / "pool" / "mine.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(keys)
    for arguments in ([], ["--", "pool"]):
        done = snakemake(tmp_path, "-n", "--config", "device=host", "overrides=[pool=mine]", *arguments)
        assert done.code == 0, done.said
    assert re.search(r"^train_pool +1$", done.said, re.MULTILINE)


def test_the_training_of_a_pool_can_be_kept_as_the_other_trainings_can(snakemake: Planner, tmp_path: Path) -> None:
    kept = snakemake(tmp_path, "-n", "--config", "device=host", "keep=train_pool", "--", "pool")
    assert kept.code == 0, kept.said


@pytest.mark.parametrize("device", ["macs", "host_torch"])
def test_a_pool_needs_a_device_with_ncnn(snakemake: Planner, tmp_path: Path, device: str) -> None:
    done = snakemake(tmp_path, "-n", "--config", f"device={device}", "--", "pool")
    assert done.code != 0
    assert f"autotailor: ncnn runs on none of the devices {device}" in done.said


@pytest.mark.parametrize(
    ("removed", "expected"),
    [
        ("host/exports/budget_01/model.onnx", "export measure report"),
        ("host/exports/budget_01/model.ncnn.bin", "export measure report"),
        ("host/lut.csv", "profile validate search confirm export measure report"),
        ("host/summary.csv", "measure report"),
        ("sensitivity.csv", "sensitivity validate_accuracy search confirm export measure report"),
        ("supernet.pt", ""),
    ],
)
def test_a_removed_result_is_made_again_and_weights_are_not(
    snakemake: Planner, finished: Path, removed: str, expected: str
) -> None:
    """Snakemake alone asks for the targets: it would leave a run without its exports or its latency table."""
    path = finished / "results" / "resnet_digits" / removed
    content, times = path.read_bytes(), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.unlink()
    try:
        again = snakemake(finished, "-n")
    finally:
        path.write_bytes(content)
        os.utime(path, ns=times)
    assert ("Nothing to be done" in again.said) == (not expected)
    assert set(planned(again)) >= set(expected.split())
    assert "Nothing to be done" in snakemake(finished, "-n").said
