"""Signals that reach a process twice at once."""

import signal
from collections.abc import Iterator

import pytest

from autotailor.project import repeats
from autotailor.project.repeats import interrupt_once


@pytest.fixture
def before() -> Iterator[None]:
    kept = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, kept)


def test_an_interruption_that_repeats_the_last_one_does_not_disturb_the_tidying_up(
    before: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_once()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)
    monkeypatch.setattr(repeats, "TOGETHER_S", 0.0)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_an_ignored_interruption_stays_ignored(before: None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    interrupt_once()
    signal.raise_signal(signal.SIGINT)
