"""Logs of rules: every message is in the file."""

import logging
import os
from pathlib import Path

import pytest

from autotailor import logs


def test_a_name_that_is_no_utf_8_is_logged(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rule.log"
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        logs.send_to(str(path))
        logging.getLogger("autotailor").warning("%s is left out\n%s", os.fsdecode(b"caf\xe9.png"), "\x1b[2Jé\u202e")
    finally:
        for handler in root.handlers:
            handler.close()
        root.handlers[:] = before
        root.setLevel(level)
        logging.captureWarnings(False)
    assert path.read_text(encoding="utf-8") == "caf\\udce9.png is left out\n\\x1b[2Jé\\u202e\n"
    assert "Logging error" not in capfd.readouterr().err


def test_a_flood_of_lines_is_counted_and_not_written(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    logger = logging.getLogger("autotailor.flooded")
    logger.addFilter(logs.Sparing(most=2, seconds=60.0, clock=lambda: now[0]))
    with caplog.at_level(logging.INFO):
        for number in range(3000):
            now[0] += 0.01
            logger.info("a client has gone: %d", number)
        now[0] += 60
        logger.info("a client has gone: %s", "last")
        logger.info("quiet again")
    assert caplog.messages == [
        "a client has gone: 0",
        "a client has gone: 1",
        "a client has gone: last (2,998 lines left out before)",
        "quiet again",
    ]
