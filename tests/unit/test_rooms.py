"""The order of the house: imports point one way, rooms stay small, and folders say what prefixes would."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import networkx as nx
import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "autotailor"
ROOMS = sorted(path.parent for path in PACKAGE.rglob("__init__.py"))
MOST_FILES = 14
TESTS = ROOT / "tests" / "unit"
TOPICS = {
    "rooms": "the order of all rooms",
    "startup": "what commands, packages and rules import",
    "prediction/divergences": "distances that add up, through outcomes, observations, model and file",
    "prediction/guessing": "SubNets that only guess, through observations, model and file",
    "data/pictures/unlabelled": "pictures without labels, through listing, layout, division and streams",
    "finetuning/unlabelled": "data without labels, through all kinds of training",
    "task/walk": "pictures with several labels: from a table and a file to a verified export and its card",
    "task/maps": "pictures without labels: from a folder and a network that returns a map to a verified export",
    "finetuning/polishing/given": "weights that arrived: rate, training, comparison with the beginning",
    "finetuning/augmentation": "augmented and mixed images, through all kinds of training",
    "reporting/browser": "the report in Chromium: charts, slider, command, colours, widths, and people who cannot see",
    "reporting/score": "the name of the share of right answers, in the report and its figures",
    "fleet/page/browser": "the comparison page in Chromium: colours, widths, links, paper, and people who cannot see",
    "compiler/fuzz": "broken and strange files, through parser, passes and rewrites",
    "compiler/returning": "networks that return maps or several tensors, from modules to verified files",
    "ir/random_graphs": "random networks, in all forms of all SubNets",
    "ir/proposal/paper_spaces": "the spaces of conf/model, through templates, proposal and counts",
    "profiling/measuring/killed": "profiler, session and store when a run is killed",
}
"""Tests of what several modules do together, and what these do."""


def test_imports_between_rooms_point_one_way() -> None:
    """The contracts stand in pyproject.toml, section tool.importlinter.

    import-linter runs in a process of its own, because it disables the loggers of the process that it runs in.
    """
    run = (
        "import sys; from importlinter import cli; sys.exit(cli.lint_imports(sys.argv[1], no_cache=True, no_logo=True))"
    )
    found = subprocess.run(
        [sys.executable, "-c", run, str(ROOT / "pyproject.toml")], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports in functions and under TYPE_CHECKING count."""
    found = grimp.build_graph("autotailor", cache_dir=None)
    imports = nx.DiGraph(
        (name, other) for name in found.modules for other in found.find_modules_directly_imported_by(name)
    )
    assert imports.number_of_edges() > 1000
    assert [sorted(circle) for circle in nx.strongly_connected_components(imports) if len(circle) > 1] == []


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.relative_to(PACKAGE.parent).as_posix())
def test_a_room_is_small(room: Path) -> None:
    assert len(list(room.glob("*.py"))) <= MOST_FILES


def test_every_folder_with_code_is_a_room() -> None:
    assert sorted({path.parent for path in PACKAGE.rglob("*.py")}) == ROOMS


def test_no_file_repeats_the_name_of_its_folder_as_a_prefix() -> None:
    prefixes = {path: {path.parent.name, path.parent.name.removesuffix("s")} for path in PACKAGE.rglob("*.py")}
    repeated = [path for path, names in prefixes.items() if any(path.stem.startswith(f"{name}_") for name in names)]
    assert [path.relative_to(PACKAGE).as_posix() for path in repeated] == []


def rooms_of(layer: str) -> list[str]:
    """The rooms of one layer of a contract."""
    return [room.strip() for room in layer.split("|")]


def contracts() -> dict[str, list[list[str]]]:
    """Container to its layers, the lowest first."""
    with (ROOT / "pyproject.toml").open("rb") as stream:
        found = tomllib.load(stream)["tool"]["importlinter"]["contracts"]
    layered = [contract for contract in found if contract["type"] == "layers"]
    return {contract["containers"][0]: [rooms_of(layer) for layer in contract["layers"][::-1]] for contract in layered}


def listed(container: str) -> list[str]:
    """The rooms that CONTRIBUTING.md lists of a container, in its order."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    _, _, table = text.partition(f"| `src/{container.replace('.', '/')}/` | what it does |\n|---|---|\n")
    return re.findall(r"^\| `(\w+)(?:/|\.py)` \|", table.partition("\n\n")[0], re.MULTILINE)


@pytest.mark.parametrize(("container", "layers"), contracts().items(), ids=contracts())
def test_the_map_for_contributors_lists_every_room_in_order(container: str, layers: list[list[str]]) -> None:
    left = listed(container)
    for layer in layers:
        part, left = left[: len(layer)], left[len(layer) :]
        assert sorted(part) == sorted(layer)
    assert left == []


def test_a_test_file_stands_with_the_module_or_package_that_it_is_named_after() -> None:
    modules = {path.relative_to(PACKAGE).with_suffix("").as_posix() for path in PACKAGE.rglob("*.py")}
    packages = {room.relative_to(PACKAGE).as_posix() for room in ROOMS}
    tested = {
        (path.parent.relative_to(TESTS) / path.stem.removeprefix("test_")).as_posix()
        for path in TESTS.rglob("test_*.py")
    }
    assert sorted(tested - modules - packages) == sorted(TOPICS)
