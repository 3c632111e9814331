"""Functions of the user, which a configuration names as ``package.module:factory``."""

import importlib
import sys
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autotailor.ir.errors import AutoTailorError

FAILURES = (Exception, SystemExit)
"""What the user's own code may raise; SystemExit would end the command without a word."""


def find_factory(source: str, what: str, error: type[AutoTailorError]) -> Callable[..., Any]:
    """The function that ``package.module:factory`` names; the current folder is searched for modules, too.

    Args:
        source: the name.
        what: begins the message where there is no such function.
        error: type of the error to raise.

    Raises:
        AutoTailorError: the module cannot be imported, or has no such function; the error has the type ``error``.
    """
    module, _, factory = source.partition(":")
    if not module or not factory:
        raise error(f"{what}: expected package.module:factory, not {source!r}")
    search_current_folder()
    try:
        imported = importlib.import_module(module)
    except ImportError as reason:
        hint = f"; name the module without .py: {module_of(module)}:{factory}" if module.endswith(".py") else ""
        raise error(f"{what}: module {module} cannot be imported: {reason}{hint}") from reason
    except FAILURES as reason:
        raise error(f"{what}: module {module} cannot be imported: {raised(reason)}") from reason
    try:
        function = getattr(imported, factory)
    except AttributeError as reason:
        raise error(f"{what}: {reason}; name a function of the module") from reason
    if not callable(function):
        raise error(f"{what}: {source} is a {type(function).__name__}; name a function of the module")
    return function  # type: ignore[no-any-return]


def module_of(file: str) -> str:
    """The name under which Python imports a file of code."""
    return file.removesuffix(".py").replace("/", ".").lstrip(".")


def raised(error: BaseException) -> str:
    """What the user's code has raised, with the line of that code, because a message shows no traceback."""
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_library(frame.filename)]
    if frames and not isinstance(error, SyntaxError):  # the text of a SyntaxError names file and line
        text = f"{text}, at {Path(frames[-1].filename).name}:{frames[-1].lineno}"
    if isinstance(error, SystemExit):
        text += '; it exits: put what reads the command line or exits under `if __name__ == "__main__":`'
    return text


def _is_library(path: str) -> bool:
    """Whether a file belongs to Python, to an installed package or to autotailor, and not to the user's own code."""
    # the name ``__file__`` would say that this module reads the files beside itself (``autotailor.code``)
    here = Path(raised.__code__.co_filename).parent
    folders = (*map(sysconfig.get_path, ("stdlib", "purelib", "platlib")), str(here))
    return path.startswith(("<", *folders))


def search_current_folder() -> None:
    """Lets the user's modules in the current folder be imported."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
