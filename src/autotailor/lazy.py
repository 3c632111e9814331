"""Imports a package's names on first use, because PyTorch, pandas and pymoo take seconds and few callers need all.

A package lists the module of each name twice: in imports for type checkers, and in a literal dictionary. ``attach``
imports the module when the name is first used::

    if TYPE_CHECKING:
        from autotailor.search.optimizer import search

    _HOMES = {"search": "autotailor.search.optimizer"}
    __getattr__ = attach(__name__, _HOMES)

A name that is also the name of a submodule (``search.candidates``) must be imported at once instead, because Python
binds a submodule's name in the package as soon as the submodule is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def attach(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The module-level ``__getattr__`` (PEP 562) of a package, whose ``dir`` then lists all names for completion.

    Args:
        package: its ``__name__``.
        homes: maps each name to the module that defines it, or to ``module:other`` where its name is ``other`` there.

    Returns:
        A function that imports a name and stores it in the package; it raises ``AttributeError`` for unknown names.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, other = homes[name].partition(":")
        value = getattr(import_module(module), other or name)
        setattr(sys.modules[package], name, value)
        return value

    module = sys.modules[package]
    module.__dir__ = lambda: sorted({*vars(module), *homes})  # type: ignore[method-assign]
    return find
