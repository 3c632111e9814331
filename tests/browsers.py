"""Chromium for tests of pages, and pages that may not use a network."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request, sync_playwright

SERIOUS = {"serious", "critical"}


@contextmanager
def chromium() -> Iterator[Browser]:
    """A running Chromium; a test is skipped where there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("chromium is missing: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, path: Path, width: int = 1280, **options: Any) -> Iterator[Page]:
    """A page of a file, as wide as asked; any request beside the file fails the test, and so does any error."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    page = context.new_page()
    wrong: list[str] = []

    def requested(request: Request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            wrong.append(request.url)

    page.on("request", requested)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.goto(path.as_uri())
    yield page
    context.close()
    assert not wrong


def nothing_hinders(page: Page, width: int, charts: str) -> None:
    """Asserts that axe-core finds nothing serious, and that page, charts and captions are no wider than the window.

    Args:
        page: open in a window of this width.
        width: of the window, pixels.
        charts: selector of the charts.
    """
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for part in (*page.locator(charts).all(), *page.locator("caption span:visible").all()):
        box = part.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width


def barriers(page: Page) -> list[str]:
    """What axe-core finds serious or critical, with the elements that it is about."""
    found = Axe().run(page).response["violations"]
    return [f"{v['id']}: {[node['target'] for node in v['nodes'][:3]]}" for v in found if v["impact"] in SERIOUS]
