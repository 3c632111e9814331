"""What Python code says: its syntax tree without comments, layout and docstrings.

``ast.dump`` and ``ast.unparse`` write the same code differently in different Pythons. The walk of this file does not:

* fields that are empty, or that only some versions have, are left out (3.12 added ``type_params``; 3.13 leaves empty
  fields out of ``ast.dump``);
* the pieces of a formatted string are joined as far as they can be, since versions cut them differently;
* constants are written by type and value.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

UNSAID = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
"""Fields that follow from the others, or that nothing runs."""


def meaning(text: str) -> str:
    """SHA-256 (hexadecimal) of what a text says: of its statements where it is Python, of itself where it is not."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # ValueError: null bytes
        return hashlib.sha256(text.encode()).hexdigest()
    return tree_meaning(tree)


def tree_meaning(tree: ast.AST) -> str:
    """The same for a syntax tree."""
    digest = hashlib.sha256()
    for piece in _pieces(tree):
        digest.update(piece.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def is_type_checking(node: ast.AST) -> bool:
    """Whether a statement is ``if TYPE_CHECKING:``, whose body never runs."""
    if not isinstance(node, ast.If):
        return False
    name = node.test.attr if isinstance(node.test, ast.Attribute) else getattr(node.test, "id", None)
    return name == "TYPE_CHECKING"


def _pieces(value: Any) -> Iterator[str]:
    """The text of a node, a list or a constant, piece by piece."""
    if isinstance(value, ast.Constant):
        yield from _constant(value.value)
    elif isinstance(value, ast.JoinedStr):
        yield "(JoinedStr"
        for part in _joined(value.values):
            yield from _pieces(part)
        yield ")"
    elif isinstance(value, ast.AST):
        yield f"({type(value).__name__}"
        for name in value._fields:
            found = getattr(value, name, None)
            if name not in UNSAID and not _is_empty(found):
                yield f" {name}="
                yield from _pieces(found)
        yield ")"
    elif isinstance(value, list):
        yield "["
        for item in value:
            if not _is_silent(item):
                yield from _pieces(item)
        yield "]"
    else:
        yield from _constant(value)


def _is_empty(value: Any) -> bool:
    """Whether a field says nothing; a format specification without text is none."""
    if isinstance(value, ast.JoinedStr):
        return not list(_joined(value.values))
    return value is None or value == []


def _is_silent(item: Any) -> bool:
    """Whether a statement has no effect: a docstring (a string alone), or what only type checkers read."""
    if isinstance(item, ast.Expr):
        return isinstance(item.value, ast.Constant) and isinstance(item.value.value, str)
    return is_type_checking(item) and not item.orelse


def _joined(parts: Iterable[ast.expr]) -> Iterator[ast.expr]:
    """The parts of a formatted string, neighbouring texts as one, empty texts left out."""
    text = ""
    for part in parts:
        if isinstance(part, ast.Constant):
            text += str(part.value)
            continue
        if text:
            yield ast.Constant(text)
        text = ""
        yield part
    if text:
        yield ast.Constant(text)


def _constant(value: object) -> Iterator[str]:
    """Type and value; the length keeps texts apart from what follows them."""
    if isinstance(value, str):
        yield f"str{len(value)}:"
        yield value
    else:
        yield f"{type(value).__name__}:{value!r};"
