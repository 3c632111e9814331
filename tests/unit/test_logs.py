"""Logs of rules: every message is in the file."""

from __future__ import annotations

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
