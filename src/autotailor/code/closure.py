"""The files that a piece of code can run: the closure of its imports, each with a hash of its meaning.

The closure holds everything that a file imports, also inside functions, and the packages of the imported modules. Of a
module that imports its names on first use, only the used names are followed. A registry that imports every module of
its folder brings all of them in. Modules outside the given folders (libraries) are left out.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotailor.code.references import ALL_MODULES, ALL_NAMES
from autotailor.code.source import Source, Sources


@dataclass(frozen=True)
class _Module:
    """A file of code.

    Attributes:
        name: dotted; an ``__init__`` has the name of its package.
        path: of the file.
        package: dotted name of the package that holds the module; for an ``__init__``, of the package itself.
        source: the file's meaning and references.
    """

    name: str
    path: Path
    package: str
    source: Source


class Code:
    """Code in some folders, as it is when it is first asked about: each file is read once.

    Args:
        folders: searched for modules, in this order.
        cache: a file that keeps the results of parsing by the hash of the parsed file; with None, each process parses
            all files again.
        without: modules and packages that are left out.
        packages: further packages of the top level by name, each with its folder. What lies beside the folder of such
            a package is not searched.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        cache: Path | None = None,
        without: Iterable[str] = (),
        packages: Mapping[str, Path] | None = None,
    ) -> None:
        self._folders = [Path(folder) for folder in folders]
        self._packages = dict(packages or {})
        self._sources = Sources(cache)
        self._without = tuple(without)
        self._modules: dict[str, _Module | None] = {}
        self._is_folder: dict[str, bool] = {}
        self._closures: dict[tuple[str | Path, ...], dict[str, str]] = {}

    def closure(self, *entries: str | Path) -> dict[str, str]:
        """The files that some modules (dotted names) or scripts (paths) can run.

        Returns:
            Maps the dotted name of each module, or the relative path of each other file, to twelve hexadecimal digits
            of the hash of its meaning; sorted by name.
        """
        if entries not in self._closures:
            self._closures[entries] = self._walk(entries)
        return dict(self._closures[entries])

    def _walk(self, entries: Iterable[str | Path]) -> dict[str, str]:
        walk = _Walk(self)
        for entry in entries:
            if isinstance(entry, Path):
                walk.enter(_Module(entry.name, entry, "", self._sources.read(entry)))
            else:
                walk.left.append(entry)
        walk.follow_all()
        self._sources.save()
        return dict(sorted(walk.meanings.items()))

    def module(self, name: str) -> _Module | None:
        """A module by its dotted name; None where the folders do not hold the module or ``without`` names it."""
        if name not in self._modules:
            counts = not any(name == other or name.startswith(f"{other}.") for other in self._without)
            self._modules[name] = self._find(name) if counts else None
        return self._modules[name]

    def _find(self, name: str) -> _Module | None:
        if not all(part.isidentifier() for part in name.split(".")):
            return None
        for base in self._places(name):
            for path, package in ((base / "__init__.py", name), (base.with_suffix(".py"), name.rpartition(".")[0])):
                if path.is_file():
                    return _Module(name, path, package, self._sources.read(path))
        return None

    def _places(self, name: str) -> list[Path]:
        """Paths at which the file or folder of a dotted name may lie, without a suffix."""
        first, *rest = name.split(".")
        places = [folder.joinpath(first, *rest) for folder in self._folders]
        return [*places, self._packages[first].joinpath(*rest)] if first in self._packages else places

    def is_folder(self, name: str) -> bool:
        """Whether a dotted name names a folder; a folder of modules is a package even without ``__init__``."""
        if name not in self._is_folder:
            self._is_folder[name] = any(place.is_dir() for place in self._places(name))
        return self._is_folder[name]

    def children(self, package: str) -> list[str]:
        """Dotted names of all modules and packages in a package, and in the packages within."""
        paths = [path for folder in self._places(package) if folder.is_dir() for path in folder.iterdir()]
        packages = {path.stem for path in paths if (path / "__init__.py").is_file()}
        names = {path.stem for path in paths if path.suffix == ".py"} | packages
        direct = [f"{package}.{name}" for name in sorted(names - {"__init__"})]
        return direct + [below for name in sorted(packages) for below in self.children(f"{package}.{name}")]


class _Walk:
    """Follows references from module to module, and collects the modules on the way."""

    def __init__(self, code: Code) -> None:
        self.meanings: dict[str, str] = {}
        self.left: list[str] = []
        self._code = code

    def enter(self, module: _Module) -> None:
        """Adds an imported module, and queues every name that the module refers to."""
        if module.name in self.meanings:
            return
        self.meanings[module.name] = module.source.meaning[:12]
        if module.source.reads_data:
            self.meanings |= _data_files(module)
        self.left += [_absolute(name, module.package) for name in module.source.names]

    def follow_all(self) -> None:
        """Follows each queued dotted name once; a name outside the folders ends there."""
        followed: set[str] = set()
        while self.left:
            name = self.left.pop()
            if name in followed:
                continue
            followed.add(name)
            first, *rest = name.split(".")
            module = self._code.module(first)
            if module is not None or self._code.is_folder(first):
                self._within(first, module, rest)

    def _within(self, name: str, module: _Module | None, rest: list[str]) -> None:
        """Follows the rest of a dotted name inside a module or a folder of modules."""
        if module is not None:
            self.enter(module)
        if not rest:
            return
        part, *further = rest
        if part == ALL_MODULES:
            self.left += self._code.children(name)
            return
        if module is not None:
            self._names(module, part, further)
        inner = f"{name}.{part}"
        submodule = self._code.module(inner)
        if submodule is not None or self._code.is_folder(inner):
            self._within(inner, submodule, further)

    def _names(self, module: _Module, part: str, further: list[str]) -> None:
        """Queues the origin of a name that a module imports; the module's own names need nothing more."""
        source = module.source
        lazy = source.lazy if source.is_lazy else {}
        if part == ALL_NAMES:
            self.left += [_absolute(target, module.package) for target in lazy.values()]
            return
        target = _absolute(lazy.get(part) or source.bindings.get(part, ""), module.package)
        if target and not f"{target}.".startswith(f"{module.name}.{part}."):  # else a submodule, which `_within` enters
            self.left.append(".".join([target, *further]))


def _absolute(name: str, package: str) -> str:
    """Resolves the leading dots of a relative name; one dot stands for the package."""
    bare = name.lstrip(".")
    level = len(name) - len(bare)
    if not level:
        return name
    parts = package.split(".")
    return ".".join(filter(None, [*parts[: len(parts) - level + 1], bare]))


def _data_files(module: _Module) -> dict[str, str]:
    """Files beside a module that are not Python, such as templates, also in subfolders that are not packages."""
    folder = module.path.parent
    top = folder.parents[module.package.count(".")] if module.package else folder
    if not module.package:
        return {}
    return {path.relative_to(top).as_posix(): _content(path) for path in sorted(_beside(folder))}


def _beside(folder: Path) -> Iterable[Path]:
    for path in folder.iterdir():
        if path.is_dir() and path.name != "__pycache__" and not (path / "__init__.py").exists():
            yield from _beside(path)
        elif path.is_file() and path.suffix not in {".py", ".pyc"}:
            yield path


def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def changed_modules(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Names of the modules that are new, gone, or whose meaning changed."""
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
