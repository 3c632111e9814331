"""The meaning of Python code: a hash of its syntax tree without comments, layout and docstrings.

``ast.dump`` and ``ast.unparse`` write the same code differently in different versions of Python. The walk in this file
gives the same text in all versions:

* It leaves out empty fields and fields that only some versions have (3.12 added ``type_params``; 3.13 leaves empty
  fields out of ``ast.dump``).
* It joins neighbouring pieces of a formatted string, because versions cut them differently.
* It writes constants by type and value.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

UNSAID = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
"""Fields that follow from other fields, or that have no effect at run time."""


def meaning(text: str) -> str:
    """SHA-256 (hexadecimal) of a text's meaning: of its statements where it is Python, else of the text itself."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # ValueError: null bytes
        return hashlib.sha256(text.encode()).hexdigest()
    return tree_meaning(tree)


def tree_meaning(tree: ast.AST) -> str:
    """SHA-256 (hexadecimal) of a syntax tree's meaning."""
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
            value_ = getattr(value, name, None)
            if name not in UNSAID and not _is_empty(value_):
                yield f" {name}="
                yield from _pieces(value_)
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
    """Whether a field is empty; a format specification without text counts as empty."""
    if isinstance(value, ast.JoinedStr):
        return not list(_joined(value.values))
    return value is None or value == []


def _is_silent(item: Any) -> bool:
    """Whether a statement has no effect: a docstring (a string alone), or a block for type checkers."""
    if isinstance(item, ast.Expr):
        return isinstance(item.value, ast.Constant) and isinstance(item.value.value, str)
    return is_type_checking(item) and not item.orelse


def _joined(parts: Iterable[ast.expr]) -> Iterator[ast.expr]:
    """The parts of a formatted string, with neighbouring texts joined and empty texts left out."""
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
    """Type and value of a constant; the length of a text marks where it ends."""
    if isinstance(value, str):
        yield f"str{len(value)}:"
        yield value
    else:
        yield f"{type(value).__name__}:{value!r};"
