"""Two networks on two devices in one run, killed in the middle: nothing is done twice, and the comparison is right.

The second network is the first one with a smaller space, so that it has no operator of its own. The second device is a
phone over ADB (aarch64, under QEMU).
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
import yaml

from acceptance.pipeline import SMALL
from autotailor.profiling.transports.adb.tcp import user_key
from device.adb_daemon import AdbDaemon
from device.runners import built

pytestmark = [pytest.mark.sweep, pytest.mark.timeout(2400)]

ROOT = Path(__file__).parents[2]
MODELS, DEVICES = ("resnet_digits", "slim"), ("host", "phone")
ONLY_HERE = ["polish=none", "export.budgets=2", "sensitivity.evaluations=0", "search.evaluations=0", "workers=1"]
ONCE = {"pretrain", "compile", "finetune", "sensitivity", "validate_accuracy"}
PER_PAIR = {"enumerate", "profile", "validate", "search", "confirm", "polish", "export", "measure", "report"}


def configure(directory: Path, address: str) -> None:
    """Files of the user's: a phone, and a network whose space is part of that of ``resnet_digits``."""
    conf = directory / "conf"
    for group, name, source, changes in (
        ("device", "phone", "android", {"name": "phone", "address": address}),
        ("model", "slim", "resnet_digits", {"name": "slim"}),
    ):
        (conf / group).mkdir(parents=True)
        content = yaml.safe_load((ROOT / "conf" / group / f"{source}.yaml").read_text())
        if group == "model":
            content["space"]["skip"] = ["stem.*", "stage3.*"]
        (conf / group / f"{name}.yaml").write_text(yaml.safe_dump({**content, **changes}, sort_keys=False))


def command(*arguments: str, models: tuple[str, ...] = MODELS, devices: tuple[str, ...] = DEVICES) -> list[str]:
    config = [f"model=[{','.join(models)}]", f"device=[{','.join(devices)}]"]
    return [
        *(sys.executable, str(ROOT / "workflow" / "launch.py"), "--snakefile", str(ROOT / "Snakefile")),
        *("--profile", str(ROOT / "profiles" / "default"), "--cores", "2", *arguments),
        *("--config", *config, f"overrides={json.dumps([*SMALL, *ONLY_HERE])}"),
    ]


class Folder:
    """A folder in which the matrix runs."""

    def __init__(self, path: Path, home: Path) -> None:
        self.path = path
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "HOME": str(home), "PATH": programs}

    def start(self, said: Path, *arguments: str) -> subprocess.Popen[bytes]:
        with said.open("wb") as log:
            return subprocess.Popen(
                command(*arguments), cwd=self.path, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def plan(self, **which: tuple[str, ...]) -> str:
        done = subprocess.run(
            command("-n", **which), cwd=self.path, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr


def ended(said: Path) -> Counter[str]:
    """How often each rule has ended well, by the console of a run."""
    return Counter(re.findall(r"^[\d:]{8} (\w+)[^:]*: done in", said.read_text(), re.MULTILINE))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A folder in which the matrix was killed when the phone had begun to measure, and has ended when started again."""
    built("aarch64")
    folder, home = tmp_path_factory.mktemp("matrix"), tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.delenv("ANDROID_USER_HOME", raising=False)
        user_key()
    found = Folder(folder, home)
    with AdbDaemon(tmp_path_factory.mktemp("phone"), machine="aarch64") as phone:
        configure(folder, phone.address)
        first = found.start(folder / "first.txt")
        while not list(folder.glob("results/*/*/lut.csv")) and first.poll() is None:
            time.sleep(0.2)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        second = found.start(folder / "second.txt")
        assert second.wait(timeout=2000) == 0, (folder / "second.txt").read_text()[-6000:]
    return found


def test_nothing_is_done_twice(run: Folder) -> None:
    first, second = ended(run.path / "first.txt"), ended(run.path / "second.txt")
    assert first["pretrain"] >= 1
    assert first["report"] == 0  # killed in the middle
    every = first + second
    assert {rule: every[rule] for rule in ONCE} == dict.fromkeys(ONCE, len(MODELS))
    assert {rule: every[rule] for rule in PER_PAIR} == dict.fromkeys(PER_PAIR, len(MODELS) * len(DEVICES))
    assert every["fleet"] == 1


def test_what_the_networks_share_of_a_lut_is_measured_once(run: Folder) -> None:
    """Of two networks on a device, the one that comes second takes over what the first one has measured.

    The network with the smaller space adds no operator, and thus no visit, where it comes second. Where it comes first,
    the other network's visits end with those operators that are vague, which the first one may have left on a restless
    machine. All others keep their measurement; their latencies in milliseconds follow the anchor, by one factor.
    """
    operators = {
        (model, device): set(pd.read_csv(run.path / "results" / model / device / "operators.csv")["id"])
        for model in MODELS
        for device in DEVICES
    }
    for device in DEVICES:
        assert operators["slim", device] < operators["resnet_digits", device]
        files = {model: run.path / "results" / model / device / "lut.csv" for model in MODELS}
        shared = sorted(operators["slim", device])
        columns = ["latency_ms", "standard_error", "measured_at"]
        whole, part = (pd.read_csv(files[model]).set_index("operator_id").loc[shared, columns] for model in MODELS)
        if files["resnet_digits"].stat().st_mtime < files["slim"].stat().st_mtime:
            assert whole.equals(part)
            continue
        kept = whole["measured_at"] == part["measured_at"]
        assert kept.any()
        ratios = (whole.loc[kept, columns[:2]] / part.loc[kept, columns[:2]]).to_numpy()
        assert ratios == pytest.approx(ratios.mean(), rel=1e-3)


def test_a_finished_matrix_and_each_of_its_pairs_have_nothing_to_do(run: Folder) -> None:
    assert "Nothing to be done" in run.plan()
    for model in MODELS:
        assert "Nothing to be done" in run.plan(models=(model,), devices=DEVICES[1:])


def tables(run: Folder) -> tuple[Path, dict[str, pd.DataFrame]]:
    (page,) = run.path.glob("results/fleet/*/index.html")
    return page, {path.stem: pd.read_csv(path) for path in page.parent.glob("*.csv")}


def test_the_comparison_is_what_the_runs_say(run: Folder) -> None:
    page, found = tables(run)
    for device in DEVICES:
        fronts = pd.concat(
            pd.read_csv(run.path / "results" / model / device / "pareto.csv").assign(model=model) for model in MODELS
        )
        every = list(zip(fronts["latency_ms_predicted"], fronts["accuracy_predicted"], strict=True))
        beaten = [any(a <= x and b > y + 1e-9 for a, b in every) for x, y in every]
        rows = found["front"][found["front"]["device"] == device]
        best = fronts[[not each for each in beaten]]
        assert set(rows["accuracy_predicted"].round(6)) == set(best["accuracy_predicted"].round(6))
    for _, rows in found["best"].groupby(["device", "budget"]):
        assert set(rows["model"]) == set(MODELS)
        assert rows["is_best"].sum() == 1
        assert rows.loc[rows["is_best"], "accuracy_predicted"].item() == rows["accuracy_predicted"].max()
    single = found["single"].dropna(subset=["single_subnet"])
    assert (single["loss"] >= -1e-6).all()
    assert single.groupby("budgets")["single_subnet"].nunique().max() == 1
    text = page.read_text()
    for name in (*MODELS, *DEVICES):
        assert name in text
    assert "http" not in text.replace("http://www.w3.org", "")
