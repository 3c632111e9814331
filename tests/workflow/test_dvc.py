"""DVC: what one clone pushes to a remote, another clone pulls, and has nothing to do."""

import shutil
from pathlib import Path

import pytest

import checkouts

pytestmark = [pytest.mark.sweep, pytest.mark.timeout(900)]

MATRIX = "--config 'model=[resnet_digits,mobilenet_digits]' device=host"
DVC = ("dvc.yaml", ".dvcignore", ".gitignore", ".dvc/config", ".dvc/.gitignore")


def done(command: str, folder: Path) -> str:
    """What a command says that ends well."""
    found = checkouts.shell(command, folder)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout + found.stderr


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which every rule of the matrix seems to have run, and which has pushed it."""
    project, remote = tmp_path_factory.mktemp("dvc") / "first", tmp_path_factory.mktemp("remote")
    checkouts.make(project)
    (project / ".dvc").mkdir()
    for name in DVC:
        shutil.copy(checkouts.ROOT / name, project / name)
    for line in done(f"snakemake --summary {MATRIX}", project).splitlines():
        if line.startswith("results/"):
            path = project / line.split("\t")[0]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(line)
    done(f"snakemake --touch --forceall --no-hooks {MATRIX}", project)
    (project / "results" / ".work").mkdir()
    (project / "results" / ".work" / "checkpoint").write_text("of this machine only")
    done("git init -q && git config user.email a@b && git config user.name a && git add -A", project)
    done(f"dvc remote add -d lab {remote} && dvc commit -f && git add -A && git commit -qm Done && dvc push", project)
    return project


def test_a_second_clone_pulls_a_finished_matrix(first: Path) -> None:
    second = first.parent / "second"
    done(f"git clone -q {first} {second}", first)
    assert not (second / "results").exists()
    done("dvc pull", second)
    for page in ("resnet_digits/host/report.html", "fleet/resnet_digits+mobilenet_digits_on_host/index.html"):
        assert (second / "results" / page).read_text() == (first / "results" / page).read_text()
    assert not (second / "results" / ".work").exists()
    assert "Nothing to be done" in done(f"snakemake -n {MATRIX}", second)
    assert "Nothing to be done" in done("snakemake -n --config model=mobilenet_digits", second)
    assert "up to date" in done("dvc status", second)


def test_what_was_not_pulled_is_made(first: Path) -> None:
    third = first.parent / "third"
    done(f"git clone -q {first} {third}", first)
    done("dvc pull results/resnet_digits .snakemake/metadata", third)
    assert "Nothing to be done" in done("snakemake -n", third)
    assert "finetune" in done("snakemake -n --config model=mobilenet_digits", third)
