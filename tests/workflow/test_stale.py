"""What a change of code or content reruns, in real Snakemake, dry: all of it that counts, and no more."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotailor import code
from forked_snakemake import Done, Snakemake

ROOT = Path(__file__).parents[2]


def planned(done: Done) -> set[str]:
    """Rules that a dry run would execute."""
    assert done.code == 0, done.said
    return {rule for rule, _ in re.findall(r"^(\w+)\s+(\d+)$", done.said, re.MULTILINE)} - {"total", "default"}


def record(results: Path, checkout: Path) -> None:
    """What rules write about their code."""
    modules = code.rule_code(checkout)
    for folder in (results, results / "host"):
        for path in (folder / "provenance").glob("*.json"):
            found = code.rule_modules(modules, checkout, path.stem)
            path.write_text(json.dumps({"schema_version": 1, "rule": path.stem, "code": found, "outputs": {}}))


@pytest.fixture(scope="module")
def snakemake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snakemake]:
    """A checkout in which every rule seems to have run."""
    checkout = tmp_path_factory.mktemp("checkout")
    for name in ("src", "workflow", "conf"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "Snakefile", checkout)
    (checkout / "profiles").symlink_to("workflow/profiles")
    with Snakemake(checkout, tmp_path_factory.mktemp("said")) as run:
        for line in run("--summary").said.splitlines():
            if line.startswith("results/"):
                path = checkout / line.split("\t")[0]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(line)
        record(checkout / "results" / "resnet_digits", checkout)
        assert run("--touch", "--forceall").code == 0
        assert planned(run("-n")) == set()
        yield run


class Edited:
    """A file of the checkout that says something else for a while; more, where nothing is replaced."""

    def __init__(self, path: Path, old: str = "", new: str = "ADDED = 1\n") -> None:
        self.path, self.old, self.new = path, old, new

    def __enter__(self) -> None:
        self.text = self.path.read_text()
        assert self.old in self.text
        self.path.write_text(self.text.replace(self.old, self.new, 1) if self.old else self.text + self.new)

    def __exit__(self, *_: object) -> None:
        self.path.write_text(self.text)


def test_docstrings_comments_and_dates_rerun_nothing(snakemake: Snakemake) -> None:
    source = snakemake.folder / "src" / "autotailor"
    for path in (source / "ir" / "supernet.py", snakemake.folder / "workflow" / "scripts" / "finetune.py"):
        with Edited(path, '"""', '"""Says more. '):
            assert planned(snakemake("-n")) == set()


TRAINED = {"finetune", "sensitivity", "search", "export", "measure", "report"}


def test_changed_code_is_named_and_can_be_kept(snakemake: Snakemake) -> None:
    loop = snakemake.folder / "src" / "autotailor" / "finetuning" / "loop.py"
    with Edited(loop, "0.5 * (1 + math.cos", "0.6 * (1 + math.cos"):
        done = snakemake("-n")
        assert planned(done) >= TRAINED | {"pretrain"}
        assert "\n  finetune: autotailor.finetuning.loop\n" in done.said
        assert "kept with --config keep=" in done.said
        kept = planned(snakemake("-n", config=["keep=[finetune,sensitivity]"]))
        assert not kept & {"pretrain", "compile", "finetune", "sensitivity", "profile"}
        assert "report" in kept
        assert snakemake("-n", config=["keep=finetun"]).code == 1


def test_code_of_the_compiler_reruns_training_unless_it_is_kept(snakemake: Snakemake) -> None:
    """Kept is what a rule made: the rules before it are not run for their code either."""
    parser = snakemake.folder / "src" / "autotailor" / "compiler" / "parser.py"
    with Edited(parser):
        done = snakemake("-n")
        assert planned(done) >= TRAINED
        assert "\n  finetune: autotailor.compiler.parser\n" in done.said
        assert not planned(snakemake("-n", config=["keep=finetune"])) & {"compile", "finetune", "sensitivity"}


def test_changed_fusion_rules_rerun_what_reads_them(snakemake: Snakemake) -> None:
    fusion = snakemake.folder / "src" / "autotailor" / "profiling" / "runtimes" / "ncnn_fusion.py"
    with Edited(fusion):
        found = planned(snakemake("-n"))
    assert found >= {"enumerate", "profile", "validate", "search"}
    assert not found & {"pretrain", "compile", "finetune", "sensitivity"}


def test_a_template_reruns_the_report_only(snakemake: Snakemake) -> None:
    with Edited(snakemake.folder / "src" / "autotailor" / "reporting" / "templates" / "report.css", "{", "{ "):
        found = planned(snakemake("-n"))
    assert "report" in found
    assert not found & {"finetune", "sensitivity", "profile", "validate"}
