"""The references of one Python file: the dotted names that it imports and uses, also inside functions.

A file with ``from autotailor import data`` and ``data.load`` refers to ``autotailor.data.load``. ``closure.py`` finds
out whether ``load`` is a module, a name of ``autotailor.data``, or a name that this package imports on first use.

Two endings are special:

* ``a.b.*``: all names of ``a.b`` may be used, because the code passes the module itself on.
* ``a.b.**``: all modules of the package ``a.b`` are imported, as registries do (``pkgutil.iter_modules``).

Imports under ``if TYPE_CHECKING:`` do not run. In a module that imports its names on first use (``__getattr__``), these
imports tell where the names are defined, and are listed separately (``lazy``).
"""

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
    """The references of a file.

    Attributes:
        names: dotted names; names that begin with dots are relative to the file's package.
        bindings: maps each imported name of the module to its dotted name.
        lazy: maps each name that the module imports on first use to its dotted name.
        is_lazy: whether the module has a ``__getattr__``.
        reads_data: whether the module reads files beside itself.
    """

    names: set[str] = field(default_factory=set)
    bindings: dict[str, str] = field(default_factory=dict)
    lazy: dict[str, str] = field(default_factory=dict)
    is_lazy: bool = False
    reads_data: bool = False


def references(tree: ast.Module) -> References:
    """The references of a module."""
    visitor = _Visitor()
    visitor.block(tree.body)
    return visitor.result


class _Visitor(ast.NodeVisitor):
    """Walks through a module; each scope maps a name to its dotted name, or to None for a local value."""

    def __init__(self) -> None:
        self.result = References()
        self._scopes: list[dict[str, str | None]] = [{}]
        self._in_getattr = False

    def block(self, body: list[ast.stmt]) -> None:
        """Visits a block's imports first, because a function may be defined before an import that it uses."""
        for node in _own_nodes(body):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._bind(node)
        for statement in body:
            self.visit(statement)

    def _bind(self, node: ast.Import | ast.ImportFrom) -> None:
        scope = self._scopes[-1]
        for name, target in _imported(node).items():
            self.result.names.add(target)
            scope[name] = target
            if len(self._scopes) == 1:
                self.result.bindings[name] = target
        if isinstance(node, ast.Import):
            for alias in node.names:  # `import a.b` binds a, and imports a.b
                self.result.names.add(alias.name)
                if not alias.asname:
                    scope[alias.name.partition(".")[0]] = alias.name.partition(".")[0]

    def visit_If(self, node: ast.If) -> None:
        """Reads the imports for type checkers, which tell where lazy names are defined."""
        if not is_type_checking(node):
            self.generic_visit(node)
            return
        for inner in ast.walk(ast.Module(node.body, [])):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                self.result.lazy |= _imported(inner)
        for statement in node.orelse:
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Visits a function in a new scope, because the function's own names hide those of the module."""
        outermost = len(self._scopes) == 1
        self.result.is_lazy |= outermost and node.name == "__getattr__"
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
        self.visit_FunctionDef(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Marks the module as lazy at ``__getattr__ = attach(...)``, which works like a function of that name."""
        names = {inner.id for target in node.targets for inner in ast.walk(target) if isinstance(inner, ast.Name)}
        self.result.is_lazy |= len(self._scopes) == 1 and "__getattr__" in names
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Records ``name.a.b`` as one dotted name."""
        chain = self._chain(node)
        if chain is None:
            self.generic_visit(node)
        elif chain:
            self.result.names.add(chain)

    def visit_Name(self, node: ast.Name) -> None:
        """Records a name without attributes: the code passes on the object, so all names in it may be used."""
        self.result.reads_data |= node.id == "__file__"
        if isinstance(node.ctx, ast.Load) and (target := self._target(node.id)):
            self.result.names.add(f"{target}.{ALL_NAMES}")

    def visit_Call(self, node: ast.Call) -> None:
        """Records imports by function calls, and calls that read files beside the module."""
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        self.result.reads_data |= called in DATA_READERS
        if called in LISTERS and node.args and (package := self._package(node.args[0], "__path__")):
            self.result.names.add(_inside(package))
        if called in IMPORTERS and node.args and not self._in_getattr:
            self._import(node.args[0])
        self.generic_visit(node)

    def _import(self, name: ast.expr) -> None:
        """Records ``import_module`` of a literal name, or of a package and a name known only at run time."""
        parts = name.values if isinstance(name, ast.JoinedStr) else [name]
        first = parts[0] if parts else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            whole = first.value if len(parts) == 1 else f"{first.value.rpartition('.')[0]}.{ALL_MODULES}"
            self.result.names.add(whole)
        elif isinstance(first, ast.FormattedValue) and (
            package := self._package(first.value, "__name__") or self._package(first.value, "__package__")
        ):
            self.result.names.add(_inside(package))

    def _package(self, node: ast.expr, attribute: str) -> str | None:
        """The package in ``__path__`` or ``package.__path__``; the file's own package is a dot."""
        if isinstance(node, ast.Name):
            return "." if node.id == attribute else None
        if isinstance(node, ast.Attribute) and node.attr == attribute:
            return self._chain(node.value) or None
        return None

    def _chain(self, node: ast.expr) -> str | None:
        """Dotted name of a chain ``name.a.b``; "" where the name is a local value; None where it is no chain."""
        if isinstance(node, ast.Name):
            return self._target(node.id) or ""
        if isinstance(node, ast.Attribute):
            before = self._chain(node.value)
            return f"{before}.{node.attr}" if before else before
        return None

    def _target(self, name: str) -> str | None:
        """The dotted name of an imported name; None where the name is not imported."""
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None


def _inside(package: str) -> str:
    """The reference to all modules of a package; a dot stands for the file's own package."""
    return f"{package.removesuffix('.')}.{ALL_MODULES}"


def _imported(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Maps each name that an import binds to its dotted name."""
    if isinstance(node, ast.Import):
        return {alias.asname: alias.name for alias in node.names if alias.asname}
    module = "." * node.level + (node.module or "")
    separator = "" if module.endswith(".") or not module else "."
    return {alias.asname or alias.name: f"{module}{separator}{alias.name}" for alias in node.names}


def _own_nodes(body: list[ast.stmt]) -> list[ast.AST]:
    """Nodes that run in a block's own scope, without the insides of functions and blocks for type checkers."""
    nodes: list[ast.AST] = []
    left: list[ast.AST] = list(body)
    while left:
        node = left.pop()
        nodes.append(node)
        if is_type_checking(node):
            left += node.orelse  # type: ignore[attr-defined]
        elif not isinstance(node, (*_FUNCTIONS, *_COMPREHENSIONS)):
            left += ast.iter_child_nodes(node)
    return nodes


def _stored(body: list[ast.stmt]) -> list[str]:
    """Names to which a function assigns values."""
    return [node.id for node in _own_nodes(body) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
