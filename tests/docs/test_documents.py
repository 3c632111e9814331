"""README.md and ``docs`` say what is so: each command block is run, planned, composed, or says why not."""

import argparse
import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import onnx_ir
import pytest
import torch
import yaml

import autotailor
import documents
import networks
from autotailor import config as configuration
from autotailor.__main__ import COMMANDS as COMMANDS_OF_AUTOTAILOR
from autotailor.compiler.sources.export import export_module
from autotailor.stages import STAGES
from documents import ROOT, Block
from forked_snakemake import Snakemake
from picture_files import photo

PAGES = documents.pages()
BLOCKS = [block for page in PAGES for block in documents.blocks(page)]
COMMANDS = [block for block in BLOCKS if block.language in documents.COMMANDS]
PRINTED = [(above, block) for above, block in pairwise(BLOCKS) if block.mark == "printed by the block above"]

Run = Callable[[str], str]


def of(*languages: str, mark: str = "") -> list[Any]:
    """Parameters: the blocks in some languages that have this mark."""
    found = [block for block in COMMANDS if block.language in languages and block.mark == mark]
    return [pytest.param(block, id=block.place) for block in found]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with what the documents speak of: a model, pictures, their configuration, an exported SubNet."""
    project = tmp_path_factory.mktemp("reader") / "autotailor"
    for folder in ("conf", "profiles", "workflow"):
        shutil.copytree(ROOT / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "Snakefile", project)
    (project / "src").symlink_to(ROOT / "src")
    for label, name in enumerate(("ant", "bee", "cat", "dog", "eel")):
        (project / "photos" / name).mkdir(parents=True)
        for number in range(3):
            photo(100 * label + number, (60, 48)).save(project / "photos" / name / f"{number}.jpg")
    model = project / "models" / "mine.onnx"
    model.parent.mkdir()
    onnx_ir.save(export_module(networks.make("mobilenet"), 32), model)
    described = shell("python -m autotailor inspect models/mine.onnx --data photos --yaml", project)
    (project / "conf" / "model" / "mine.yaml").write_text(described, encoding="utf-8")
    export(autotailor.compile(model), project / "results" / "mine" / "host" / "exports" / "budget_01")
    return project


def export(net: autotailor.SuperNet, folder: Path) -> None:
    """The smallest SubNet in the two forms that a reader's own program loads."""
    folder.mkdir(parents=True)
    subnet = net.smallest()
    net.export_onnx(subnet, folder / "model.onnx")
    shape = onnx_ir.load(folder / "model.onnx").graph.inputs[0].shape
    assert shape is not None
    program = torch.export.export(net.build(subnet).eval(), (torch.zeros(*shape.numpy()),))
    torch.export.save(program, str(folder / "model.pt2"))


@pytest.fixture(scope="module")
def run(project: Path) -> Run:
    """Runs a command once, however many pages name it; gives what it printed."""
    said: dict[str, str] = {}

    def runner(command: str) -> str:
        if command not in said:
            said[command] = shell(command, project)
        return said[command]

    return runner


@pytest.fixture(scope="module")
def snakemake(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snakemake]:
    """Snakemake in the checkout."""
    with Snakemake(project, tmp_path_factory.mktemp("said")) as planner:
        yield planner


def shell(command: str, project: Path) -> str:
    """What a command prints to a reader who stands in the checkout with the environment active."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "120"}
    done = subprocess.run(
        ["bash", "-c", command], cwd=project, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{command}\n{(done.stdout + done.stderr)[-4000:]}"
    return done.stdout + ("" if "--yaml" in command else done.stderr)


def composed(conf: Path, model: str = "resnet_digits", device: str = "host", overrides: tuple[str, ...] = ()) -> Any:
    """The configuration of a run, checked against its schema."""
    found = configuration.compose(conf, model, device, list(overrides))
    configuration.validate(found)
    return found


def changed(section: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A section with some of its values changed, at any depth."""
    return section | {
        key: changed(section[key], value) if isinstance(value, dict) and isinstance(section.get(key), dict) else value
        for key, value in changes.items()
    }


def words(line: str) -> list[str]:
    """A line without what only draws a table."""
    return re.sub(r"[─│━┃|]", " ", line).split()


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_a_fence_names_a_language_under_which_commands_are_found(block: Block) -> None:
    assert block.language not in documents.ALIASES, f"use one of {documents.COMMANDS}, or text for what is printed"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_command_stands_indented_instead_of_fenced(page: Path) -> None:
    found = re.findall(r"^ {4,}(?:python|snakemake|make|pytest|pip) .*$", documents.prose(page), re.MULTILINE)
    assert not found


@pytest.mark.parametrize("block", of("sh", "bash", "python", "yaml", mark="not run"))
def test_a_block_that_is_not_run_says_why(block: Block) -> None:
    assert len(block.text.split()) >= 3


@pytest.mark.parametrize("block", of("sh", "bash", "python", "yaml", mark="run by"))
def test_the_test_that_runs_a_block_exists(block: Block) -> None:
    path, _, name = block.text.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("block", of("sh", "bash"))
def test_commands_run(block: Block, run: Run) -> None:
    for command in documents.commands(block.code):
        run(command)


@pytest.mark.parametrize("block", of("sh", "bash", mark="planned"))
def test_runs_are_planned(block: Block, snakemake: Snakemake) -> None:
    for command in documents.commands(block.code):
        program, *arguments = shlex.split(command, comments=True)
        assert program == "snakemake", "only runs of Snakemake can be planned"
        done = snakemake("-n", "--quiet", "rules", *arguments)
        assert done.code == 0, f"{command}\n{done.said[-4000:]}"


def test_two_commands_plan_a_run_of_ones_own_network_and_pictures(snakemake: Snakemake) -> None:
    """What ``inspect --data --yaml`` has written in the checkout is a run without a change."""
    done = snakemake("-n", "--config", "model=mine", "device=host")
    assert done.code == 0, done.said
    jobs = dict(re.findall(r"^(\w+)\s+(\d+)$", done.said, re.MULTILINE))
    assert {"compile", "finetune", "profile", "sensitivity", "search", "export", "report"} <= set(jobs)
    assert "pretrain" not in jobs


@pytest.mark.parametrize(("above", "block"), [pytest.param(*pair, id=pair[1].place) for pair in PRINTED])
def test_what_is_said_to_be_printed_is_printed(above: Block, block: Block, run: Run) -> None:
    printed = [words(line) for command in documents.commands(above.code) for line in run(command).splitlines()]
    missing = [
        line
        for line in block.code.splitlines()
        if line.strip() and not any(words(line) == found[: len(words(line))] for found in printed)
    ]
    assert not missing


@pytest.mark.parametrize("block", of("python"))
def test_python_runs(block: Block, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    exec(compile(block.code, block.place, "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("block", of("yaml"))
def test_yaml_composes(block: Block, project: Path) -> None:
    """A block with a title is that file of ``conf``; one without changes values of the configuration."""
    if not block.title:
        whole = composed(project / "conf")
        configuration.validate(changed(whole, yaml.safe_load(block.code)))
        return
    folder, group, file = block.title.split("/")
    path, name = project / folder / group / file, file.removesuffix(".yaml")
    assert folder == "conf"
    assert not path.exists(), f"{block.title} is a file of the repository: name another one"
    path.write_text(block.code, encoding="utf-8")
    try:
        if group in ("model", "device"):
            found = composed(project / "conf", **{group: name})
        else:
            found = composed(project / "conf", overrides=(f"{group}={name}",))
    finally:
        path.unlink()
    assert found[group]["name"] == name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, _, heading in (link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", documents.prose(page))):
        if "://" in target:
            continue
        linked = (page.parent / target).resolve() if target else page
        assert linked.exists(), target
        if heading:
            headings = re.findall(r"^#+ (.*)$", documents.prose(linked), re.MULTILINE)
            assert heading in map(documents.anchor, headings), f"{target}#{heading}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"\b(?:tests|benchmarks|src|workflow)/[\w/]+\.(?:py|csv|smk|cpp|yaml)\b", text)
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_names_a_commit(page: Path) -> None:
    assert re.findall(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7}\b", documents.prose(page)) == []


def test_the_readme_fits_a_newcomer() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_map_holds_every_room() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"`src/autotailor/([^`]+)`", text)
    rooms = {room for name in named for room in name.strip("{}").split(",")}
    assert rooms == {path.parent.name for path in (ROOT / "src" / "autotailor").glob("*/__init__.py")}


def test_the_tutorial_explains_every_rule_that_it_plans() -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    planned, explained = (re.findall(each, text, re.MULTILINE) for each in (r"^(\w+) 1$", r"^\| `(\w+)` \|"))
    assert explained == planned
    # Compare, exits and pool are asked for, fleet compares runs; moments and distil are for weights that arrive.
    asked = {"compare", "heads", "screen", "exits", "train_pool", "make_pool"}
    assert set(planned) == STAGES.keys() - {*asked, "fleet", "moments", "distil"}


def test_the_page_on_reruns_names_the_rules_that_can_be_kept() -> None:
    text = (ROOT / "docs" / "guides" / "reruns.md").read_text(encoding="utf-8")
    (sentence,) = re.findall(r"The rules that take long can be\s+kept: ([^.]+)\.", text)
    assert re.findall(r"`(\w+)`", sentence) == configuration.CommandLine.schema()["properties"]["keep"]["items"]["enum"]


def test_the_list_of_folders_names_every_command() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"\| `commands/` \| the commands (.*?) \|", text)
    commands = argparse.ArgumentParser().add_subparsers()
    for command in COMMANDS_OF_AUTOTAILOR:
        command.add_command(commands)
    assert re.findall(r"`(\w+)`", row) == list(commands.choices)
