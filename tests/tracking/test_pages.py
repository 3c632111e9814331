"""MLflow's pages in Chromium: what opens first, a filter, two runs side by side, a registered model."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browsers import chromium
from tracked_runs import COUNTED, DEVICE, MODEL, Project

pytestmark = [pytest.mark.server, pytest.mark.timeout(3600)]
MILLISECONDS = 60_000
expect.set_options(timeout=MILLISECONDS)


@pytest.fixture(scope="module")
def page(project: Project) -> Iterator[Page]:
    """A browser that has never seen this server."""
    project.wait_until_published()
    with chromium() as browser:
        context = browser.new_context(viewport={"width": 1600, "height": 1000})
        context.set_default_timeout(MILLISECONDS)
        shown = context.new_page()
        shown.goto(f"{project.server.uri}/#/experiments")
        yield shown
        context.close()


def picture(page: Page, folder: Path, name: str) -> None:
    """A screenshot, once the page shows all that it has asked for."""
    page.wait_for_timeout(3000)
    page.screenshot(path=str(folder / f"{name}.png"))


def names_of_parents(project: Project) -> dict[str, str]:
    """Names of the first two runs by their devices."""
    return {run.data.tags["device"]: run.info.run_name for run in project.runs(autotailor__kind="parent")}


def test_the_experiment_opens_as_model_training(page: Page, project: Project, pictures: Path) -> None:
    page.get_by_role("link", name=MODEL).first.click()
    expect(page).to_have_url(re.compile(r"/runs\?.*workflowType=machine_learning"))
    expect(page.get_by_text("Judges")).to_have_count(0)  # of the pages for agents
    for name in names_of_parents(project).values():
        expect(page.get_by_role("link", name=name)).to_be_visible()
    page.get_by_role("button", name="Close").click()  # MLflow's assistant
    picture(page, pictures, "experiment")


def test_a_tag_filters_runs(page: Page, project: Project, pictures: Path) -> None:
    names = names_of_parents(project)
    field = page.get_by_placeholder("metrics.rmse")
    field.fill(f"tags.device = '{DEVICE}' and tags.`autotailor.kind` = 'parent'")
    field.press("Enter")
    expect(page.get_by_text("1 matching run")).to_be_visible()
    expect(page.get_by_role("link", name=names[DEVICE])).to_be_visible()
    expect(page.get_by_role("link", name=names[COUNTED])).to_have_count(0)
    picture(page, pictures, "filtered")


def test_two_runs_are_compared(page: Page, project: Project, pictures: Path) -> None:
    field = page.get_by_placeholder("metrics.rmse")
    field.fill("tags.`autotailor.kind` = 'parent'")
    field.press("Enter")
    expect(page.get_by_text("2 matching runs")).to_be_visible()
    names = names_of_parents(project)
    for name in names.values():
        box = page.get_by_role("row").filter(has_text=name).get_by_role("checkbox", name="row selection")
        box.click(force=True)
        expect(box).to_be_checked()
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("Comparing 2 Runs")).to_be_visible()
    for name in names.values():
        expect(page.get_by_role("cell", name=name)).to_be_visible()
    expect(page.get_by_text(re.compile("^export/budget_01/")).first).to_be_visible()
    picture(page, pictures, "compared")


def test_the_curves_of_a_training_stand_in_a_section(page: Page, project: Project, pictures: Path) -> None:
    parents = {run.data.tags["device"]: run for run in project.runs(autotailor__kind="parent")}
    page.goto(f"{project.server.uri}/#/experiments/{project.experiment}/runs/{parents[DEVICE].info.run_id}")
    picture(page, pictures, "run")
    page.get_by_role("tab", name="Model metrics").click()
    expect(page.get_by_text("finetune", exact=False).first).to_be_visible()
    picture(page, pictures, "metrics")
    page.get_by_role("tab", name="System metrics").click()
    expect(page.get_by_text("cpu_utilization_percentage").first).to_be_visible()
    picture(page, pictures, "system")


def test_a_registered_model_shows_its_best_version_and_what_was_measured(
    page: Page, project: Project, pictures: Path
) -> None:
    (version,) = project.versions(DEVICE)["budget_01"]
    page.goto(f"{project.server.uri}/#/models")
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    picture(page, pictures, "models")
    page.get_by_role("link", name=version.name).click()
    expect(page.get_by_text(re.compile(r"^@\s*best$")).first).to_be_visible()
    picture(page, pictures, "model")
    page.get_by_role("link", name="Version 1").click()
    expect(page.get_by_role("cell", name="accuracy_measured", exact=True)).to_be_visible()
    expect(page.get_by_text("Inputs (1)")).to_be_visible()
    picture(page, pictures, "version")
