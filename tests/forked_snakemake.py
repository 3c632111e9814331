"""Runs many Snakemake commands in a short time, each in a fork of one process that has imported what they need.

A command is Snakemake's own command line, and behaves as in a new process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

PROGRAM = """
import contextlib, io, json, os, sys
import snakemake.cli
from autotailor import config, data, finetuning, profiling, search, sensitivity
for module in (config, data, finetuning, profiling, search, sensitivity):
    for name in module.__all__:
        getattr(module, name)
data.names()
snakemake.cli.get_argument_parser()  # imports the plugins
for line in sys.stdin:
    command = json.loads(line)
    child = os.fork()
    if not child:
        for number, path in ((1, command["out"]), (2, command["err"])):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.chdir(command["folder"])
        sys.path[:0] = command["path"]
        sys.argv = ["snakemake", *command["arguments"]]
        code = 0
        try:
            snakemake.cli.main(command["arguments"])
        except SystemExit as end:
            code = end.code
            if isinstance(code, str):
                print(code, file=sys.stderr)
            code = 1 if isinstance(code, str) else code or 0
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Done(NamedTuple):
    """How a command ended: its exit code, and what it printed on its two outputs."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """What it printed on both outputs."""
        return self.out + self.err


class Snakemake:
    """Runs commands; used in a ``with`` statement.

    Args:
        folder: the folder that commands run in, with a Snakefile.
        scratch: an existing folder for the commands' output.
    """

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder, self._out, self._err = folder, scratch / "out.txt", scratch / "err.txt"
        self.always: tuple[str, ...] = ()  # arguments of every command

    def __enter__(self) -> Snakemake:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def __call__(self, *arguments: str, config: Sequence[str] = (), path: Path | None = None) -> Done:
        """Runs ``snakemake ARGUMENTS --config CONFIG``; ``path`` is a folder that Python searches first for modules."""
        every = [*self.always, *arguments, *(["--config", *config] if config else [])]
        first = [str(path)] if path else []
        files = {"out": str(self._out), "err": str(self._err)}
        command = {"folder": str(self.folder), "arguments": every, "path": first, **files}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        return Done(code, self._out.read_text(), self._err.read_text())
