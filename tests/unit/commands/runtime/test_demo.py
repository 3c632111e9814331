"""``autotailor runtime demo``, as a person runs it, and its page in Chromium."""

import csv
from pathlib import Path

import psutil
import pytest

from autotailor.__main__ import main
from browsers import barriers, chromium, opened
from pools import tiny_pool
from served import serve_binary


@pytest.fixture(scope="module", autouse=True)
def library() -> None:
    serve_binary()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of page and trace of two seconds of a run's pool."""
    run = tmp_path_factory.mktemp("demo")
    tiny_pool(run / "pool")
    assert main(["runtime", "demo", str(run), "--seconds", "2", "--burdens", "0,2,0", "--output", str(run / "o")]) == 0
    return run / "o"


def test_no_process_is_left(shown: Path) -> None:
    assert [child for child in psutil.Process().children() if "monotonic" in " ".join(child.cmdline())] == []


def test_the_trace_has_every_inference(shown: Path) -> None:
    with (shown / "runtime.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) > 30
    assert list(dict.fromkeys(row["burdens"] for row in rows)) == ["0", "2"]
    assert {row["member"] for row in rows} <= {"member_00", "member_01", "member_02"}


def test_the_page_draws_its_charts_without_network_and_barriers(shown: Path) -> None:
    with chromium() as browser, opened(browser, shown / "runtime.html") as page:
        page.evaluate("window.autotailor.drawing")
        assert page.locator(".chart .live svg").count() == 2
        assert "met their" in page.locator(".answer").inner_text()
        assert page.locator("tbody").first.locator("tr").count() == 3
        assert barriers(page) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--burdens", "0,99"], "expected numbers from 0 to 16"),
        (["--burdens", "a"], "expected numbers"),
        (["--seconds", "0"], "0.0 s"),
        (["--deadline-ms", "-1"], "deadline_ms is -1"),
        (["--rate", "-5"], "--rate -5: expected inferences a second"),
        (["--rate", "nan"], "--rate nan: expected"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    tmp_path: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_pool(tmp_path / "pool")
    assert main(["runtime", "demo", str(tmp_path / "pool"), *options, "--output", str(tmp_path)]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "runtime.html").exists()


def test_a_folder_that_cannot_be_made_is_told_before_the_demonstration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_pool(tmp_path / "pool")
    (tmp_path / "file").touch()
    words = ["runtime", "demo", str(tmp_path / "pool"), "--seconds", "600", "--output", str(tmp_path / "file" / "o")]
    assert main(words) == 1
    assert "--output" in (said := capsys.readouterr().err)
    assert "the folder cannot be made (Not a directory); name another one" in said
