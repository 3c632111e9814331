"""Signals that end a command in order."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from autotailor.commands.runtime.serve import NUMBERS, Interruption


@pytest.fixture(autouse=True)
def not_ignored() -> Iterator[None]:
    """The tests themselves may run under nohup or in the background, where some signals are ignored."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in NUMBERS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_first_signal_ends_the_work_and_further_ones_do_nothing(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in NUMBERS]
    with Interruption():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        for each in NUMBERS:
            os.kill(os.getpid(), each)
    assert [signal.getsignal(each) for each in NUMBERS] == before


def test_a_command_that_outlives_its_terminal_still_does() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interruption():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
