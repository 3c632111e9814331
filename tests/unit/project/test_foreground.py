import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autotailor.project import foreground

OUTER = """
import sys
from autotailor.project import foreground
sys.exit(foreground.run([sys.executable, "-c", sys.argv[1]]))
"""
INNER = """
import pathlib, signal, sys, time
def end(number, frame):
    time.sleep(0.5)  # as a program does that puts things in order
    pathlib.Path("ended").write_text(str(number))
    sys.exit(7)
signal.signal(signal.SIGINT, end)
signal.signal(signal.SIGTERM, end)
pathlib.Path("ready").touch()
time.sleep(60)
"""


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_is_the_programs(code: int) -> None:
    assert foreground.run([sys.executable, "-c", f"raise SystemExit({code})"]) == code


def test_a_program_that_a_signal_ends_gives_128_and_the_signal() -> None:
    program = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert foreground.run([sys.executable, "-c", program]) == 128 + signal.SIGKILL


def test_the_handlers_of_the_caller_are_restored() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    foreground.run([sys.executable, "-c", ""])
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_program_ends_in_order_when_the_user_or_a_batch_system_ends_it(tmp_path: Path, number: int) -> None:
    """Ctrl-C goes to the whole group of the terminal, SIGTERM to the outer process alone."""
    outer = subprocess.Popen([sys.executable, "-c", OUTER, INNER], cwd=tmp_path, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "ready").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        if number == signal.SIGINT:
            os.killpg(outer.pid, number)
        else:
            outer.send_signal(number)
        assert outer.wait(timeout=60) == 7
    finally:
        outer.kill()
    assert (tmp_path / "ended").read_text() == str(int(number))
