"""The files that a piece of code can run: the closure of its imports, by name and meaning.

A file counts with all that it imports, in functions too, and with every package on the way there. A module that imports
its names on first use counts with those of them that are used. What is not found in the given folders (libraries) does
not count. A registry that imports every module of its folder counts with all of them.
"""

from __future__ import annotations

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
        name: dotted; that of a package for its ``__init__``.
        path: of the file.
        package: dotted name of the package that it is in, or is.
        source: what it says.
    """

    name: str
    path: Path
    package: str
    source: Source


class Code:
    """Code in some folders.

    Args:
        folders: where modules are looked for, first one first.
        cache: a file that keeps what files say, by content; None: they are read anew by each process.
        without: modules and packages that do not count.
    """

    def __init__(self, folders: Sequence[Path], cache: Path | None = None, without: Iterable[str] = ()) -> None:
        self._folders = [Path(folder) for folder in folders]
        self._sources = Sources(cache)
        self._without = tuple(without)
        self._modules: dict[str, _Module | None] = {}

    def closure(self, *entries: str | Path) -> dict[str, str]:
        """The files that some modules (dotted names) or scripts (paths) can run.

        Returns:
            Dotted name of each module, or path of each other file from its folder, to twelve hexadecimal digits of what
            it says; sorted by name.
        """
        walk = _Walk(self)
        for entry in entries:
            if isinstance(entry, Path):
                walk.enter(_Module(entry.name, entry, "", self._sources.read(entry)))
            else:
                walk.left.append(entry)
        walk.follow_all()
        self._sources.save()
        return dict(sorted(walk.found.items()))

    def module(self, name: str) -> _Module | None:
        """A module by its dotted name; None where the folders do not hold it or it does not count."""
        if name not in self._modules:
            counts = not any(name == other or name.startswith(f"{other}.") for other in self._without)
            self._modules[name] = self._find(name) if counts else None
        return self._modules[name]

    def _find(self, name: str) -> _Module | None:
        if not all(part.isidentifier() for part in name.split(".")):
            return None
        for folder in self._folders:
            base = folder.joinpath(*name.split("."))
            for path, package in ((base / "__init__.py", name), (base.with_suffix(".py"), name.rpartition(".")[0])):
                if path.is_file():
                    return _Module(name, path, package, self._sources.read(path))
        return None

    def is_folder(self, name: str) -> bool:
        """Whether a dotted name is that of a folder, which is a package without ``__init__`` where it holds modules."""
        return any(folder.joinpath(*name.split(".")).is_dir() for folder in self._folders)

    def children(self, package: str) -> list[str]:
        """Dotted names of all modules and packages in a package, and in the packages within."""
        folders = [folder.joinpath(*package.split(".")) for folder in self._folders]
        paths = [path for folder in folders if folder.is_dir() for path in folder.iterdir()]
        packages = {path.stem for path in paths if (path / "__init__.py").is_file()}
        names = {path.stem for path in paths if path.suffix == ".py"} | packages
        direct = [f"{package}.{name}" for name in sorted(names - {"__init__"})]
        return direct + [below for name in sorted(packages) for below in self.children(f"{package}.{name}")]


class _Walk:
    """One walk along references."""

    def __init__(self, code: Code) -> None:
        self.found: dict[str, str] = {}
        self.left: list[str] = []
        self._code = code

    def enter(self, module: _Module) -> None:
        """A module that is imported, with all that it refers to."""
        if module.name in self.found:
            return
        self.found[module.name] = module.source.meaning[:12]
        if module.source.reads_data:
            self.found |= _data_files(module)
        self.left += [_absolute(name, module.package) for name in module.source.names]

    def follow_all(self) -> None:
        """The dotted names that are left, each once: packages, modules, names in them, or nothing of ours."""
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
        """The parts of a dotted name behind a module, or behind a folder of modules."""
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
        """A name that a module has from elsewhere; its own need nothing more."""
        source = module.source
        lazy = source.lazy if source.is_lazy else {}
        if part == ALL_NAMES:
            self.left += [_absolute(target, module.package) for target in lazy.values()]
            return
        target = _absolute(lazy.get(part) or source.bindings.get(part, ""), module.package)
        if target and not f"{target}.".startswith(f"{module.name}.{part}."):  # else: that module, which is looked into
            self.left.append(".".join([target, *further]))


def _absolute(name: str, package: str) -> str:
    """A dotted name without leading dots; one dot is the package."""
    bare = name.lstrip(".")
    level = len(name) - len(bare)
    if not level:
        return name
    parts = package.split(".")
    return ".".join(filter(None, [*parts[: len(parts) - level + 1], bare]))


def _data_files(module: _Module) -> dict[str, str]:
    """Files beside a module that are no Python, in folders that are no packages: templates, for instance."""
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
    """Names of what is new, gone, or says something else."""
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
