"""The report in a real browser, without a network."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from autotailor.reporting import ReportInputs, breakdown, build_report
from autotailor.reporting.explorer import command
from autotailor.reporting.inputs import Tables
from browsers import chromium, nothing_hinders, opened

READY = "document.querySelector('#chart-front-0 .live svg') && document.querySelector('#card-name').textContent.trim()"
POINTS = "#chart-front-0 .points_marks path"


@pytest.fixture(scope="module", name="browser")
def browser_fixture() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module", name="made")
def made_fixture(tmp_path_factory: pytest.TempPathFactory, artifacts: Callable[..., ReportInputs]) -> ReportInputs:
    """All artifacts of a run, with ``report.html`` beside them."""
    inputs = artifacts(tmp_path_factory.mktemp("browser"))
    build_report(inputs, inputs.summary.parent / "report.html")
    return inputs


@pytest.fixture(name="report")
def report_fixture(made: ReportInputs) -> Path:
    return made.summary.parent / "report.html"


@pytest.fixture(name="page")
def page_fixture(browser: Browser, report: Path) -> Iterator[Page]:
    with opened(browser, report, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.wait_for_function(READY)
        yield page


def point(page: Page, name: str) -> Locator:
    """The point of an exported SubNet, as measured: the last one with its name."""
    number = page.evaluate(
        "name => { const of = autotailor.views['chart-front-0'].scenegraph().root, found = [];"
        "(function walk(mark) { if (mark.name === 'points_marks') found.push(...mark.items);"
        "(mark.items ?? []).forEach(walk); })(of);"
        "return found.findLastIndex(item => item.datum.id === name); }",
        name,
    )
    return page.locator(POINTS).nth(number)


def test_the_answer_comes_first(page: Page) -> None:
    said = page.locator("header .answer").inner_text()
    assert said == "budget_02 is 2.2 times as fast as your network on host but 2.4 ±0.3 points less accurate."
    assert page.locator("header .caveats li").all_inner_texts() == [
        "1 of 3 budgets is missed when measured: budget_01 by 3.9 %. Measure again on a quiet device, or raise "
        "search.confidence."
    ]
    assert page.locator("header .answer").bounding_box()["y"] < 200  # type: ignore[index]


def test_pointing_at_a_subnet_tells_what_it_is_and_a_click_copies_its_command(page: Page, made: ReportInputs) -> None:
    point(page, "budget_03").hover()
    expect(page.locator("#card-name")).to_have_text("budget_03")
    for text in ("1.49 ±0.009 ms", "93.00 ±0.4 %", "1.51 ms", "1.5 ms, met", "1.40×", "inherited"):
        expect(page.locator("#card-facts")).to_contain_text(text)
    assert page.locator("#card-choices li").all_inner_texts() == [
        "resolution 32",
        "stage1.depth 3",
        "stage1.width 0.25",
    ]
    assert "budget_03" in page.locator(".hint").inner_text()
    point(page, "budget_03").click()
    expect(page.locator("#said")).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == command(Tables(made), "budget_03")


def test_keys_reach_every_subnet(page: Page, made: ReportInputs) -> None:
    page.locator("th[data-pick=budget_01] button").focus()
    expect(page.locator("#card-name")).to_have_text("budget_01")
    expect(page.locator("#card-facts")).to_contain_text("0.38 ms, missed")
    page.locator("#card-copy").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("navigator.clipboard.readText()") == command(Tables(made), "budget_01")


@pytest.mark.parametrize(("among", "latency"), [("export", "measured"), ("front", "expected")])
def test_the_slider_shows_the_best_subnet_of_each_budget(
    among: str, latency: str, page: Page, made: ReportInputs
) -> None:
    accuracy = "accuracy_measured" if among == "export" else "accuracy_predicted"
    table = pd.read_csv(made.summary if among == "export" else made.pareto, dtype={"subnet": str})
    table = table[table["name"] != "original"] if among == "export" else table
    page.locator(f"input[value={among}]").check()
    slider = page.locator("#budget")
    seen = set()
    for step in (0, 1, 40, 80, 120, 160, 200):
        slider.fill(str(step))
        budget = float(page.evaluate("autotailor.views['chart-front-0'].signal('budget')"))
        within = table[table[f"latency_ms_{latency}"] <= budget * (1 + 1e-5)]
        shown = page.locator("#card-name").inner_text().removesuffix(": on the predicted front")
        if within.empty:
            assert shown == "No SubNet costs so little"
        else:
            best = within.loc[within[accuracy].idxmax()]
            assert shown == best["name" if among == "export" else "subnet"]
            assert shown in (slider.get_attribute("aria-valuetext") or "")
        seen.add(shown)
    assert len(seen) > 3
    slider.focus()
    before = page.locator("#budget-shown").inner_text()
    page.keyboard.press("ArrowLeft")
    assert page.locator("#budget-shown").inner_text() != before


def test_where_the_time_goes_follows_the_choice_of_a_subnet(page: Page, made: ReportInputs) -> None:
    table = Tables(made).needed("contributors")

    def shown() -> list[list[str]]:
        return [row.locator("th, td").all_text_contents() for row in page.locator("#time-rows tr").all()]

    static = shown()
    page.locator("#time-subnet").select_option("budget_01")
    expected = breakdown.places(table, "budget_01")
    for cells, (place, numbers) in zip(shown(), expected.iterrows(), strict=True):
        after = "–" if pd.isna(numbers["after"]) else f"{numbers['after']:.4f}"
        assert cells[:5] == [place, numbers["stage"] or "–", numbers["kind"], f"{numbers['before']:.4f}", after]
    assert page.evaluate("autotailor.views['chart-contributors-1'].signal('subnet')") == "budget_01"
    page.locator("#time-subnet").select_option("budget_02")
    assert shown() == static, "the script writes what the page begins with"
    page.locator("#time-all").click()
    assert page.locator("#time-rows tr.more").first.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_hinders_people_in_any_colours_and_on_a_phone(
    scheme: str, width: int, browser: Browser, report: Path
) -> None:
    with opened(browser, report, width, color_scheme=scheme) as page:
        page.wait_for_function(READY)
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        nothing_hinders(page, width, ".chart svg")
        blue = page.locator(POINTS).last
        assert (
            page.locator(".chart .role-axis-label text").first.evaluate("e => getComputedStyle(e).fill")
            == {
                "light": "rgb(82, 96, 112)",
                "dark": "rgb(169, 181, 194)",
            }[scheme]
        )
        assert blue.is_visible()


OVER = """[...document.querySelectorAll('.chart .live svg')].flatMap(svg => {
  const texts = [...svg.querySelectorAll('.role-legend-label text')], end = svg.getBoundingClientRect().bottom;
  return texts.filter(text => text.getBoundingClientRect().bottom > end + 1);
}).map(text => text.textContent)"""


BESIDE = """[...document.querySelectorAll('.chart .live svg')].flatMap(svg => {
  const texts = [...svg.querySelectorAll('.role-legend-label text')], end = svg.getBoundingClientRect().right;
  return texts.filter(text => text.getBoundingClientRect().right > end + 1);
}).map(text => text.textContent)"""


@pytest.mark.parametrize("width", [430, 390, 360, 320])
def test_no_legend_is_wider_than_its_chart_on_a_phone(width: int, browser: Browser, report: Path) -> None:
    with opened(browser, report, width) as page:
        page.wait_for_function(READY)
        assert page.evaluate(BESIDE) == []
        assert page.evaluate(OVER) == []


@pytest.mark.parametrize("width", [1280, 1200, 1120, 1060, 760, 520])
def test_no_legend_is_lower_than_its_chart(width: int, browser: Browser, report: Path) -> None:
    with opened(browser, report, width) as page:
        page.wait_for_function(READY)
        assert page.evaluate(OVER) == []
        page.set_viewport_size({"width": width - 90, "height": 900})
        page.wait_for_timeout(500)
        assert page.evaluate(OVER) == []


def test_without_javascript_the_charts_and_tables_are_there(browser: Browser, report: Path) -> None:
    with opened(browser, report, java_script_enabled=False) as page:
        assert page.locator(".chart > svg").count() == 7
        assert page.locator(".chart > svg").first.is_visible()
        assert not page.locator(".explorer").is_visible()
        assert not page.locator("#time-all").is_visible()
        assert page.locator("#time-rows tr").last.is_visible()


def test_paper_is_light_and_shows_all_charts(browser: Browser, report: Path) -> None:
    with opened(browser, report, color_scheme="dark") as page:
        page.wait_for_function(READY)
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).getPropertyValue('--ink').trim()") == "#1b2430"
        assert not page.locator(".explorer").is_visible()
        assert page.locator(".chart svg").first.is_visible()
        assert page.pdf()[:4] == b"%PDF"
