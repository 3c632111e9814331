"""Blanks, umlauts and quotes in the paths of the environment, the project, the network and the pictures."""

import subprocess
import sys
from pathlib import Path

import strangers

ROOT = Path(__file__).parents[2]
STRANGE = "mein ö 'q\" x"


def test_rules_run_whatever_stands_in_the_paths(tmp_path: Path) -> None:
    project = tmp_path / STRANGE / "project"
    project.mkdir(parents=True)
    environment = tmp_path / STRANGE / "venv"
    environment.symlink_to(sys.prefix, target_is_directory=True)
    strangers.write_photos(project / STRANGE)
    strangers.export(strangers.network().eval(), project / f"{STRANGE}.onnx")
    python = str(environment / "bin" / "python")

    def run(*arguments: str) -> str:
        done = subprocess.run([python, "-m", *arguments], cwd=project, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        return done.stdout

    said = run("autotailor", "inspect", f"{STRANGE}.onnx", "--data", STRANGE, "--yaml")
    (project / "conf" / "model").mkdir(parents=True)
    (project / "conf" / "model" / "mine.yaml").write_text(said, encoding="utf-8")
    snakefile = str(ROOT / "workflow" / "Snakefile")
    # moments reads the pictures
    run("snakemake", "-s", snakefile, "-c1", "--until", "moments", "--config", "model=mine", "device=host")
    assert (project / "results" / "mine" / "moments.pt").is_file()
