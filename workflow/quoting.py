"""Snakemake calls its own Python without quotes: of an environment in a folder with a blank, no rule would start."""

from __future__ import annotations

import functools
import shlex
from typing import Any

import snakemake.executors.local
from snakemake.script import ScriptBase
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor


def quote_python() -> None:
    """Quotes the path of Python in the commands of jobs and of scripts, in this process."""
    for executor in (snakemake.executors.local.Executor, RemoteExecutor):
        executor.get_python_executable = _quoted(executor.get_python_executable)
    ScriptBase._execute_cmd = _with_quoted_python(ScriptBase._execute_cmd)


def _quoted(path_of: Any) -> Any:
    @functools.wraps(path_of)
    def quoted(executor: Any) -> str:
        return shlex.quote(path_of(executor))

    return quoted


def _with_quoted_python(execute: Any) -> Any:
    @functools.wraps(execute)
    def executed(script: Any, command: str, **about: Any) -> Any:
        if "py_exec" in about:
            about["py_exec"] = shlex.quote(about["py_exec"])
        return execute(script, command, **about)

    return executed
