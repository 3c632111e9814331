from __future__ import annotations

import pytest

from autotailor.__main__ import main
from autotailor.project import runner


def test_the_exit_code_of_the_build_is_that_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "build", lambda targets, is_server: {"host": 5}[targets[0]] + is_server)
    assert main(["runner", "host"]) == 5
    assert main(["runner", "host", "--serve"]) == 6
