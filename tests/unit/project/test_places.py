from pathlib import Path

import pytest

from autotailor.project import places

ROOT = Path(__file__).parents[3]


def test_in_a_clone_everything_lies_beside_the_sources() -> None:
    assert not places.IS_INSTALLED
    assert places.ROOT == ROOT
    assert (places.WORKFLOW / "Snakefile").is_file()
    assert (places.CONF / "config.yaml").is_file()
    assert (places.RUNNER_SOURCES / "build.py").is_file()
    assert places.runner_builds() == ROOT / "build" / "runner"


def test_an_installed_runner_is_built_in_the_cache_and_anew_for_other_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tmp_path / "share" / "runner"
    (sources / "serve").mkdir(parents=True)
    monkeypatch.setattr(places, "IS_INSTALLED", True)
    monkeypatch.setattr(places, "RUNNER_SOURCES", sources)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = set()
    for name in ("main.cpp", "serve/main.cpp"):
        for text in ("one", "two"):
            (sources / name).write_text(text)
            found.add(places.runner_builds())
    assert len(found) == 4
    assert all(path.is_relative_to(tmp_path / "cache" / "autotailor") for path in found)
