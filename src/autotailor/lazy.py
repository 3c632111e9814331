"""Imports a package's names on first use, because PyTorch, pandas and pymoo take seconds and few callers need all.

A package lists the module of each name in imports for type checkers. ``attach`` reads them, and imports a module when
one of its names is first used::

    if TYPE_CHECKING:
        from autotailor.search.optimizer import search

    __getattr__ = attach(__name__)

A name that is also the name of a submodule (``search.candidates``) must be imported at once instead, because Python
binds a submodule's name in the package as soon as the submodule is imported.
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def attach(package: str) -> Callable[[str], Any]:
    """The module-level ``__getattr__`` (PEP 562) of a package, whose ``dir`` then lists all names for completion.

    Args:
        package: its ``__name__``.

    Returns:
        A function that imports a name and stores it in the package; it raises ``AttributeError`` for unknown names.
    """
    module = sys.modules[package]
    names = homes(Path(str(module.__file__)))

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, other = names[name]
        value = getattr(import_module(home), other)
        setattr(module, name, value)
        return value

    vars(module).setdefault("__all__", sorted(names))
    module.__dir__ = lambda: sorted({*vars(module), *names})  # type: ignore[method-assign]
    return find


def homes(path: Path) -> dict[str, tuple[str, str]]:
    """Each name that a file imports for type checkers, with its module and its name there."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    blocks = (node.body for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = (node for block in blocks for node in block if isinstance(node, ast.ImportFrom))
    return {alias.asname or alias.name: (str(node.module), alias.name) for node in imports for alias in node.names}
