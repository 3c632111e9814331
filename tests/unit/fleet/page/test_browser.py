"""The comparison page in a real browser, without a network."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser

import fleets
from autotailor.fleet.page.write import write_page
from autotailor.fleet.runs import Fleet
from browsers import chromium, nothing_hinders, opened


@pytest.fixture(scope="module", name="browser")
def browser_fixture() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module", name="path")
def path_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two networks on two devices."""
    folder = tmp_path_factory.mktemp("fleet")
    fleet, _ = fleets.fleet(folder / "results")
    path = folder / "results" / "fleet" / "all" / "index.html"
    write_page(fleet, path)
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_hinders_people_in_any_colours_and_on_a_phone(
    scheme: str, width: int, browser: Browser, path: Path
) -> None:
    with opened(browser, path, width, color_scheme=scheme) as page:
        nothing_hinders(page, width, "svg")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, ground.strip("rgb()").split(","))) < 3 * 128) == (scheme == "dark")


@pytest.mark.parametrize("width", [1280, 390])
def test_long_names_stay_within_the_page(width: int, browser: Browser, tmp_path: Path) -> None:
    models = ("mine", "tf_mobilenetv3_large_minimal_100_in21k_ft_in1k_of_mine")
    devices = ("kitchen panel, 2nd floor", "a_board_behind_the_second_door_on_the_left")
    runs = {
        (model, device): fleets.known(tmp_path / "results", model, device, number).run
        for number, model in enumerate(models)
        for device in devices
    }
    path = tmp_path / "results" / "fleet" / "all" / "index.html"
    write_page(Fleet(runs), path)
    with opened(browser, path, width) as page:
        nothing_hinders(page, width, "svg")
        wide = "[...document.querySelectorAll('.scroll')].map(box => box.scrollWidth - box.clientWidth)"
        assert max(page.evaluate(wide)) <= (0 if width > 1000 else 320)  # tables on a phone scroll a little


def test_the_marked_network_of_each_budget_is_the_best_one_of_the_table(browser: Browser, path: Path) -> None:
    best = pd.read_csv(path.parent / "best.csv")
    expected = best.loc[best["is_best"], "model"].tolist()
    with opened(browser, path) as page:
        marked = page.evaluate(
            "[...document.querySelectorAll('td')].filter(cell => cell.textContent.includes('★'))"
            ".map(cell => cell.closest('table').rows[0].cells[cell.cellIndex].textContent.trim())"
        )
    assert sorted(marked) == sorted(expected)


def test_links_lead_to_the_tables_and_reports_of_the_runs(browser: Browser, path: Path) -> None:
    with opened(browser, path) as page:
        links = page.evaluate("[...document.querySelectorAll('a')].map(link => link.getAttribute('href'))")
    folders = {(path.parent / link).resolve() for link in links}
    assert {
        path.parents[2] / model / device / "report.html" for model in fleets.MODELS for device in fleets.DEVICES
    } <= (folders)
    assert {link for link in links if link.endswith(".csv")} == {each.name for each in path.parent.glob("*.csv")}


def test_paper_is_light_and_shows_all_tables(browser: Browser, path: Path) -> None:
    with opened(browser, path, color_scheme="dark") as page:
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).getPropertyValue('--ink').trim()") == "#1e293b"
        assert all(table.is_visible() for table in page.locator("table").all())
        assert page.pdf()[:4] == b"%PDF"
