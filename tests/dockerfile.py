"""Executes the Dockerfile's steps without Docker: in a folder that stands for the root of the image.

Paths of the image (``/opt``, ``/project`` ...) become paths in that folder. Programs that would change this computer
are replaced: ``apt-get install`` only simulates, and looks whether the packages exist; ``useradd`` and ``install
--owner`` make folders.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dockerfile_parse import DockerfileParser

ROOT = Path(__file__).parents[1]
PATHS = re.compile(r"(?<![\w.\-/$}])/(opt|project|source|home|var/lib/apt)\b")
"""Absolute paths of the image; others are this computer's own programs."""

REPLACED = {
    "apt-get": """
case "$1" in
    update) ;;
    install) shift; exec /usr/bin/apt-get install --simulate "$@" ;;
    *) echo "unknown: apt-get $*" >&2; exit 1 ;;
esac""",
    "useradd": 'for name; do :; done; mkdir -p "$IMAGE/home/$name"',
    "install": """
folders=()
while [ $# -gt 0 ]; do
    case "$1" in --owner|--mode) shift ;; --directory) ;; *) folders+=("$1") ;; esac; shift
done
mkdir -p "${folders[@]}\"""",
    "python": f'exec {sys.executable} "$@"',
    "uv": f'exec {sys.executable} -m uv "$@"',
}


@dataclass(frozen=True)
class Step:
    """One instruction: its name in capitals, and what follows it."""

    name: str
    value: str


@dataclass
class Stage:
    """One stage of the build.

    Attributes:
        image: name of the image that the stage begins with, with the arguments' values.
        name: behind AS; empty for the last stage.
        steps: the instructions.
        env: variables that ENV and ARG have set so far.
        folder: of WORKDIR, in the image.
    """

    image: str
    name: str
    steps: list[Step] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    folder: str = "/"


def stages(arguments: Mapping[str, str] | None = None) -> list[Stage]:
    """The stages of the Dockerfile.

    Args:
        arguments: values of ARG, as --build-arg gives them.
    """
    parser = DockerfileParser(path=str(ROOT / "Dockerfile"), cache_content=True)
    given, found, first = dict(arguments or {}), [], {}
    for line in parser.structure:
        name, value = line["instruction"], line["value"]
        if name == "COMMENT":
            continue
        if name == "FROM":
            image, _, stage = value.partition(" AS ")
            found.append(Stage(filled(image, first), stage.strip()))
        elif not found:
            key, _, default = value.partition("=")
            first[key] = given.get(key, default)
        elif name == "ARG":
            key, _, default = value.partition("=")
            found[-1].env[key] = given.get(key, default)
        else:
            found[-1].steps.append(Step(name, value))
    return found


def filled(text: str, values: Mapping[str, str]) -> str:
    """A text with ``$NAME`` and ``${NAME}`` replaced."""
    return re.sub(r"\$\{?(\w+)\}?", lambda match: values.get(match[1], ""), text)


def sources(step: Step) -> tuple[str | None, list[str], str]:
    """What COPY takes: the stage it takes from, the sources, and the target."""
    words = step.value.split()
    stage = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else None
    return stage, words[:-1], words[-1]


def ignored() -> Iterator[str]:
    """Names at the top of the repository that .dockerignore lets through."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    return (rule.removeprefix("!") for rule in rules if rule.startswith("!"))


class Image:
    """The folder that stands for the image, in which stages are executed one after another.

    Stages share the folder: what a later stage copies from an earlier one lies there already.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {**os.environ, "IMAGE": str(folder)}
        for name in ("PYTHONPATH", "VIRTUAL_ENV", "UV_TORCH_BACKEND"):
            self.env.pop(name, None)
        programs = folder / "replaced"
        programs.mkdir(parents=True)
        for name, script in REPLACED.items():
            (programs / name).write_text(f"#!/bin/bash\n{script}\n")
            (programs / name).chmod(0o755)
        self.env["PATH"] = f"{programs}{os.pathsep}{self.env['PATH']}"

    def inside(self, text: str) -> str:
        """A text whose paths of the image lie in the folder."""
        return PATHS.sub(lambda match: f"{self.folder}/{match[1]}", text)

    def execute(self, stage: Stage) -> None:
        """Executes the steps of a stage."""
        self.env.update(stage.env)
        for step in stage.steps:
            getattr(self, f"_{step.name.lower()}")(stage, step)

    def run(self, command: list[str], folder: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in a folder of the image."""
        where = Path(self.inside(folder))
        return subprocess.run(command, cwd=where, env=self.env, capture_output=True, text=True, check=False)

    def _run(self, stage: Stage, step: Step) -> None:
        done = self.run(["bash", "-o", "pipefail", "-ec", self.inside(step.value)], stage.folder)
        assert done.returncode == 0, f"RUN {step.value}\n{(done.stdout + done.stderr)[-4000:]}"

    def _copy(self, stage: Stage, step: Step) -> None:
        origin, names, target = sources(step)
        place = Path(self.inside(target) if target.startswith("/") else f"{self.inside(stage.folder)}/{target}")
        for name in names:
            if origin is not None:
                assert Path(self.inside(name)) == place, (
                    "a stage copies to the same path, because stages share a folder"
                )
                assert place.exists()
            elif (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, place, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
            else:
                shutil.copy2(ROOT / name, place)

    def _workdir(self, stage: Stage, step: Step) -> None:
        stage.folder = step.value
        Path(self.inside(step.value)).mkdir(parents=True, exist_ok=True)

    def _env(self, stage: Stage, step: Step) -> None:
        for setting in step.value.split():
            key, _, value = setting.partition("=")
            if key.startswith("UV_"):  # an image keeps no cache; this computer has one, with the libraries in it
                continue
            self.env[key] = filled(self.inside(value), self.env)

    def _shell(self, stage: Stage, step: Step) -> None:
        assert json.loads(step.value) == ["/bin/bash", "-o", "pipefail", "-c"]

    def _user(self, stage: Stage, step: Step) -> None:
        """The tests run as whoever runs them."""

    _entrypoint = _cmd = _user
