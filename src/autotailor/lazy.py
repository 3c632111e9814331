"""Names that a package imports on first use: PyTorch, pandas and pymoo take seconds, and few callers need them all.

A package whose names live in heavy modules says where each of them lives, once for type checkers and once in a literal
dictionary, and lets ``attach`` import the module when the name is asked for::

    if TYPE_CHECKING:
        from autotailor.search.optimizer import search

    _HOMES = {"search": "autotailor.search.optimizer"}
    __getattr__ = attach(__name__, _HOMES)

A name that is also that of a submodule (``search.candidates``) is imported at once instead: Python binds a submodule's
name in its package as soon as anybody imports it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def attach(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The module-level ``__getattr__`` (PEP 562) of a package.

    Args:
        package: its ``__name__``.
        homes: name to the module that it lives in, or to ``module:other name`` where it has another name there.

    Returns:
        A function that imports a name and keeps it in the package; of other names it says, as Python does, that there
        are none (``AttributeError``).
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, other = homes[name].partition(":")
        value = getattr(import_module(module), other or name)
        setattr(sys.modules[package], name, value)
        return value

    return find
