"""Signals to the process that runs a workflow reach the rules among its descendants, each of them once."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autotailor.project import termination

RUNNER = """
import pathlib, signal, subprocess, sys
from autotailor.project import termination

for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, frame: pathlib.Path("runner").touch())  # as Snakemake has one
termination.hand_on_signals()
scripts = [subprocess.Popen([sys.executable, name]) for name in sys.argv[1:]]
for script in scripts:
    script.wait()
"""
SCRIPT = """
import os, pathlib, signal, subprocess, sys, time

me = pathlib.Path(sys.argv[0]).name + os.environ.get("RANK", "")
told = []
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, frame: told.append(number))
worker = None
if "finetune" in me and "RANK" not in os.environ:  # a training starts the others that train with it from the same file
    worker = subprocess.Popen([sys.executable, sys.argv[0]], env={**os.environ, "RANK": "0"})
pathlib.Path(me + ".ready").touch()
while not pathlib.Path("end").exists():
    time.sleep(0.05)
pathlib.Path(me + ".told").write_text(str(len(told)))
if worker:
    worker.wait()
"""
NAMES = ["tmp1.finetune.py", "tmp2.sensitivity.py", "tmp3.polish.py"]


def wait_for(*paths: Path) -> None:
    deadline = time.monotonic() + 60
    while not all(path.exists() for path in paths):
        assert time.monotonic() < deadline, paths
        time.sleep(0.05)


@pytest.mark.parametrize(("number", "others"), [(signal.SIGTERM, 0), (signal.SIGINT, 1)])
def test_trainings_hear_of_a_signal_once_and_other_rules_only_of_sigint(
    number: signal.Signals, others: int, tmp_path: Path
) -> None:
    folder = tmp_path / ".snakemake" / "scripts"
    folder.mkdir(parents=True)
    for name in NAMES:
        (folder / name).write_text(SCRIPT)
    command = [sys.executable, "-c", RUNNER, *(str(folder / name) for name in NAMES)]
    runner = subprocess.Popen(command, cwd=tmp_path, start_new_session=True)  # and thus without a terminal
    try:
        wait_for(*(tmp_path / f"{name}.ready" for name in [*NAMES, "tmp1.finetune.py0"]))
        runner.send_signal(number)
        wait_for(tmp_path / "runner")
        runner.send_signal(number)  # as whoever signals a whole run, of which each process hears twice
        time.sleep(0.5)  # for a signal too many
        (tmp_path / "end").touch()
        assert runner.wait(timeout=60) == 0
    finally:
        (tmp_path / "end").touch()
        runner.kill()
    told = {path.stem: int(path.read_text()) for path in tmp_path.glob("*.told")}
    assert told == {"tmp1.finetune.py": 1, "tmp1.finetune.py0": 0, "tmp2.sensitivity.py": others, "tmp3.polish.py": 1}


def test_the_terminal_tells_the_rules_of_ctrl_c_where_this_process_is_in_its_foreground() -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os._exit(0 if termination.has_terminal() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)
    asked = [sys.executable, "-c", "from autotailor.project import termination; print(termination.has_terminal())"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, start_new_session=True)
    assert done.stdout == "False\n"


TOLD = """
import signal
from autotailor.project import termination

for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, frame: None)
termination.hand_on_signals()
print(termination.was_told_to_end())
signal.raise_signal(signal.{name})
print(termination.was_told_to_end())
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_it_is_known_that_a_signal_came(name: str) -> None:
    program = [sys.executable, "-c", TOLD.format(name=name)]
    done = subprocess.run(program, capture_output=True, text=True, check=True, start_new_session=True, timeout=60)
    assert done.stdout.split() == ["False", "True"]


HOLDING = """
import signal, threading, time
from autotailor.project import termination

lock, seen = threading.Lock(), []

def exit_gracefully(number, frame):  # as Snakemake's does, it takes a lock that the main thread uses, too
    with lock:
        seen.append(number)

signal.signal(signal.SIGTERM, exit_gracefully)
termination.hand_on_signals()
with lock:
    for _ in range(2):
        signal.raise_signal(signal.SIGTERM)
while len(seen) < 2:
    time.sleep(0.01)
"""


def test_a_handler_that_waits_for_a_lock_of_the_main_thread_does_not_wait_for_ever() -> None:
    subprocess.run([sys.executable, "-c", HOLDING], check=True, timeout=30)
