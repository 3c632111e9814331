"""The launcher, which waits for another run in the same directory."""

import fcntl
import signal
import subprocess
import sys
from pathlib import Path

LAUNCH = Path(__file__).parents[2] / "workflow" / "launch.py"


def test_ctrl_c_while_it_waits_ends_it_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / ".snakemake").mkdir()
    with (tmp_path / ".snakemake" / "launch.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        waiting = subprocess.Popen(
            [sys.executable, str(LAUNCH), "-n"],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in the background
        )
        assert waiting.stderr is not None
        assert waiting.stderr.readline() == "autotailor: waiting for the end of another run in this directory\n"
        waiting.send_signal(signal.SIGINT)
        assert waiting.communicate(timeout=60)[1] == "autotailor: interrupted while it waited; the other run goes on\n"
    assert waiting.returncode == 128 + signal.SIGINT


OTHER = """
import sys, time
class Locks:
    locked = True
    def lock(self): print("locked")
sys.path.insert(0, sys.argv[1])
import turns
Locks.dag = type("Dag", (), {"workflow": type("Workflow", (), {"workdir_init": "."})})
Locks.locked = property(lambda self: not __import__("pathlib").Path("free").exists())
turns.take_turns(Locks)
Locks().lock()
"""


def test_a_second_snakemake_says_whose_run_it_waits_for_and_begins_again_after_it(tmp_path: Path) -> None:
    (tmp_path / "snakemake").write_text("import sys; print(flush=True); sys.stdin.read()")
    live = subprocess.Popen(
        [sys.executable, "snakemake"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert live.stdout is not None
    live.stdout.readline()
    second = subprocess.Popen(
        [sys.executable, "-c", OTHER, str(LAUNCH.parent)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert second.stderr is not None
    said = second.stderr.readline()
    assert said.startswith(f"autotailor: another run makes the same files: process {live.pid} of ")
    assert said.endswith(". Waiting for its end\n")
    assert second.poll() is None
    (tmp_path / "free").touch()
    live.communicate()
    assert second.communicate(timeout=60) == ("locked\n", "")


def test_a_folder_that_takes_no_files_is_named_with_the_remedy() -> None:
    done = subprocess.run(
        [sys.executable, str(LAUNCH), "-n"],
        cwd="/sys/kernel",  # which lets nobody make a folder, not even root
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("autotailor: .snakemake: cannot be used (")
    assert "give access to it" in done.stderr
    assert "Traceback" not in done.stderr
