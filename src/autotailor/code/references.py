"""What one file of Python code refers to: the dotted names that it imports and uses, in functions too.

``from autotailor import data`` and, somewhere, ``data.load`` refer to ``autotailor.data.load``. Whether ``load`` is a
module, a name of ``autotailor.data`` or a name that this package imports on first use, is for the closure to find out.

Two endings have a meaning of their own:

* ``a.b.*``: all names of ``a.b`` may be used, since the module itself is handed on;
* ``a.b.**``: all modules of the package ``a.b`` are imported, as registries do (``pkgutil.iter_modules``).

Imports under ``if TYPE_CHECKING:`` do not run. In a module that imports its names on first use (``__getattr__``) they
say where these names live, and are kept apart.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from autotailor.code.meaning import is_type_checking

ALL_NAMES, ALL_MODULES = "*", "**"
LISTERS = frozenset({"iter_modules", "walk_packages"})
IMPORTERS = frozenset({"import_module", "__import__"})
DATA_READERS = frozenset({"PackageLoader", "files", "get_data"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass
class References:
    """What a file refers to.

    Attributes:
        names: dotted names; those that begin with dots are relative to the file's package.
        bindings: module-level name to the dotted name that it was imported from.
        lazy: name to the dotted name that it lives under, where the module imports it on first use.
        is_lazy: whether the module has a ``__getattr__``.
        reads_data: whether the module looks for files beside itself.
    """

    names: set[str] = field(default_factory=set)
    bindings: dict[str, str] = field(default_factory=dict)
    lazy: dict[str, str] = field(default_factory=dict)
    is_lazy: bool = False
    reads_data: bool = False


def references(tree: ast.Module) -> References:
    """What the code of a module refers to."""
    visitor = _Visitor()
    visitor.block(tree.body)
    return visitor.found


class _Visitor(ast.NodeVisitor):
    """Walks through a module; ``_scopes`` holds what names stand for in the functions around (None: a local value)."""

    def __init__(self) -> None:
        self.found = References()
        self._scopes: list[dict[str, str | None]] = [{}]
        self._in_getattr = False

    def block(self, body: list[ast.stmt]) -> None:
        """Takes imports in before what uses them: a function may stand before an import that it needs."""
        for node in _own_nodes(body):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._bind(node)
        for statement in body:
            self.visit(statement)

    def _bind(self, node: ast.Import | ast.ImportFrom) -> None:
        scope = self._scopes[-1]
        for name, target in _imported(node).items():
            self.found.names.add(target)
            scope[name] = target
            if len(self._scopes) == 1:
                self.found.bindings[name] = target
        if isinstance(node, ast.Import):
            for alias in node.names:  # `import a.b` binds a, and imports a.b
                self.found.names.add(alias.name)
                if not alias.asname:
                    scope[alias.name.partition(".")[0]] = alias.name.partition(".")[0]

    def visit_If(self, node: ast.If) -> None:
        """What only type checkers read says where lazy names live."""
        if not is_type_checking(node):
            self.generic_visit(node)
            return
        for inner in ast.walk(ast.Module(node.body, [])):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                self.found.lazy |= _imported(inner)
        for statement in node.orelse:
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """A function's own names hide those of the module."""
        outermost = len(self._scopes) == 1
        self.found.is_lazy |= outermost and node.name == "__getattr__"
        before, self._in_getattr = self._in_getattr, self._in_getattr or (outermost and node.name == "__getattr__")
        arguments = node.args
        for outside in (*node.decorator_list, *arguments.defaults, *arguments.kw_defaults, node.returns):
            if outside is not None:
                self.visit(outside)
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        for argument in every:
            if argument is not None and argument.annotation is not None:
                self.visit(argument.annotation)
        self._scopes.append(dict.fromkeys([a.arg for a in every if a is not None] + _stored(node.body)))
        self.block(node.body)
        self._scopes.pop()
        self._in_getattr = before

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """See visit_FunctionDef."""
        self.visit_FunctionDef(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """``__getattr__ = attach(...)`` makes a module lazy as a function of that name does."""
        names = {inner.id for target in node.targets for inner in ast.walk(target) if isinstance(inner, ast.Name)}
        self.found.is_lazy |= len(self._scopes) == 1 and "__getattr__" in names
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """``name.a.b``, whole."""
        chain = self._chain(node)
        if chain is None:
            self.generic_visit(node)
        elif chain:
            self.found.names.add(chain)

    def visit_Name(self, node: ast.Name) -> None:
        """A name alone: whatever it stands for is handed on."""
        self.found.reads_data |= node.id == "__file__"
        if isinstance(node.ctx, ast.Load) and (target := self._target(node.id)):
            self.found.names.add(f"{target}.{ALL_NAMES}")

    def visit_Call(self, node: ast.Call) -> None:
        """Imports by functions, and files beside the module."""
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        self.found.reads_data |= called in DATA_READERS
        if called in LISTERS and node.args and (package := self._package(node.args[0], "__path__")):
            self.found.names.add(_inside(package))
        if called in IMPORTERS and node.args and not self._in_getattr:
            self._import(node.args[0])
        self.generic_visit(node)

    def _import(self, name: ast.expr) -> None:
        """``import_module`` of a literal, or of a literal package and a name that is found at run time."""
        parts = name.values if isinstance(name, ast.JoinedStr) else [name]
        first = parts[0] if parts else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            whole = first.value if len(parts) == 1 else f"{first.value.rpartition('.')[0]}.{ALL_MODULES}"
            self.found.names.add(whole)
        elif isinstance(first, ast.FormattedValue) and (
            package := self._package(first.value, "__name__") or self._package(first.value, "__package__")
        ):
            self.found.names.add(_inside(package))

    def _package(self, node: ast.expr, attribute: str) -> str | None:
        """The package of ``__path__`` or ``package.__path__``; the file's own is a dot."""
        if isinstance(node, ast.Name):
            return "." if node.id == attribute else None
        if isinstance(node, ast.Attribute) and node.attr == attribute:
            return self._chain(node.value) or None
        return None

    def _chain(self, node: ast.expr) -> str | None:
        """Dotted name behind ``name.a.b``; empty where the name is a local value; None where it is no such chain."""
        if isinstance(node, ast.Name):
            return self._target(node.id) or ""
        if isinstance(node, ast.Attribute):
            before = self._chain(node.value)
            return f"{before}.{node.attr}" if before else before
        return None

    def _target(self, name: str) -> str | None:
        """The dotted name that a name stands for; None where it is no import."""
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None


def _inside(package: str) -> str:
    """All modules of a package; of the file's own where it is a dot."""
    return f"{package.removesuffix('.')}.{ALL_MODULES}"


def _imported(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Name to the dotted name that it is imported from."""
    if isinstance(node, ast.Import):
        return {alias.asname: alias.name for alias in node.names if alias.asname}
    module = "." * node.level + (node.module or "")
    separator = "" if module.endswith(".") or not module else "."
    return {alias.asname or alias.name: f"{module}{separator}{alias.name}" for alias in node.names}


def _own_nodes(body: list[ast.stmt]) -> list[ast.AST]:
    """Nodes of a block that run in its own scope: not those of functions in it, nor what only type checkers read."""
    found: list[ast.AST] = []
    left: list[ast.AST] = list(body)
    while left:
        node = left.pop()
        found.append(node)
        if is_type_checking(node):
            left += node.orelse  # type: ignore[attr-defined]
        elif not isinstance(node, (*_FUNCTIONS, *_COMPREHENSIONS)):
            left += ast.iter_child_nodes(node)
    return found


def _stored(body: list[ast.stmt]) -> list[str]:
    """Names that a function gives values to."""
    return [node.id for node in _own_nodes(body) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
