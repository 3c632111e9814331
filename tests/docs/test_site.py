"""The site builds strictly, its equations are MathML, and a reader's browser fetches nothing from elsewhere."""

import re
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
WRITTEN_BY_RUNS = ("conf/data/colours.yaml", "conf/device/board.yaml")  # what a page asks its reader to make


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


def page_of(site: Path, source: Path) -> str:
    return (site / source.relative_to(DOCS).with_suffix(".html")).read_text(encoding="utf-8")


def test_every_page_is_in_the_site(site: Path) -> None:
    assert [path for path in PAGES if not (site / path.relative_to(DOCS).with_suffix(".html")).is_file()] == []


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    loaded = r"<(?:script|img|link|iframe)[^>]*?(?:src|href)=[\"']?(?:https?:)?//"
    assert [page.name for page in site.rglob("*.html") if re.search(loaded, page.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("source", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_every_equation_becomes_mathml(site: Path, source: Path) -> None:
    equations = source.read_text(encoding="utf-8").count("```math\n")
    found = re.findall(r"<math.*?</math>", page_of(site, source), re.DOTALL)
    assert len(found) == equations
    assert not any("\\" in equation for equation in found)


@pytest.mark.parametrize("source", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_the_files_that_a_page_names_exist(source: Path) -> None:
    named = re.findall(r"`((?:src|tests|conf|docs|workflow|benchmarks)/[\w./]+)`", source.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists() and path not in WRITTEN_BY_RUNS] == []
