from pathlib import Path

import pytest

from autotailor.code import Code, changed_modules


@pytest.fixture(name="folder")
def folder_fixture(tmp_path: Path) -> Path:
    """A package with an eager, a lazy and a registering subpackage."""
    files = {
        "pkg/__init__.py": "",
        "pkg/plain.py": "def f():\n    from pkg.inner import x\n",
        "pkg/inner.py": "x = 1\n",
        "pkg/typed.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg.inner import x\n",
        "pkg/eager/__init__.py": "from pkg.eager.one import one\n",
        "pkg/eager/one.py": "def one(): ...\n",
        "pkg/eager/two.py": "",
        "pkg/lazy/__init__.py": (
            "from typing import TYPE_CHECKING\n"
            "if TYPE_CHECKING:\n    from pkg.lazy.one import first\n    from pkg.lazy.two import second as last\n"
            "def __getattr__(name):\n    return getattr(import_module(f'pkg.lazy.{HOMES[name]}'), name)\n"
        ),
        "pkg/lazy/one.py": "first = 1\n",
        "pkg/lazy/two.py": "from pkg import inner\nsecond = inner.x\n",
        "pkg/lazy/three.py": "",
        "pkg/registry/__init__.py": "",
        "pkg/registry/a.py": "",
        "pkg/registry/b.py": "from ..eager import two\n",
        "pkg/load.py": (
            "import importlib, pkgutil\nfrom pkg import registry\n"
            "for module in pkgutil.iter_modules(registry.__path__):\n"
            "    importlib.import_module(f'{registry.__name__}.{module.name}')\n"
        ),
        "pkg/space/deep.py": "",
        "pkg/own/__init__.py": "import pkgutil\nfor module in pkgutil.iter_modules(__path__): ...\n",
        "pkg/own/c.py": "",
        "pkg/page/__init__.py": "",
        "pkg/page/write.py": "from jinja2 import PackageLoader\nPackageLoader('pkg.page', 'templates')\n",
        "pkg/page/plain.py": "",
        "pkg/page/templates/page.html": "<p>",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def closure(folder: Path, script: str, **options: object) -> set[str]:
    """Names in the closure of a script, besides itself and the package."""
    (folder / "script.py").write_text(script)
    return set(Code([folder], **options).closure(folder / "script.py")) - {"script.py", "pkg"}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("import numpy", ""),
        ("import pkg.inner", "pkg.inner"),
        ("from pkg import inner", "pkg.inner"),
        ("from pkg.plain import f", "pkg.plain pkg.inner"),
        ("from pkg.typed import f", "pkg.typed"),
        ("from pkg import eager", "pkg.eager pkg.eager.one"),
        ("from pkg import lazy", "pkg.lazy"),
        ("from pkg import lazy\nlazy.first", "pkg.lazy pkg.lazy.one"),
        ("from pkg.lazy import last", "pkg.lazy pkg.lazy.two pkg.inner"),
        ("import pkg\npkg.lazy.last.x", "pkg.lazy pkg.lazy.two pkg.inner"),
        ("import pkg.lazy as l\nuse(l)", "pkg.lazy pkg.lazy.one pkg.lazy.two pkg.inner"),
        ("from pkg import lazy\ndef f(lazy):\n    return lazy.first", "pkg.lazy"),
        ("from pkg import lazy\nlazy.three", "pkg.lazy pkg.lazy.three"),
        ("from pkg import lazy\ndef f():\n    return g(lazy.first)", "pkg.lazy pkg.lazy.one"),
        (
            "import pkg.load",
            "pkg.load pkg.registry pkg.registry.a pkg.registry.b pkg.eager pkg.eager.one pkg.eager.two",
        ),
        ("import pkg.own", "pkg.own pkg.own.c"),
        ("import importlib\nimportlib.import_module('pkg.inner')", "pkg.inner"),
        ("from pkg.space import deep", "pkg.space.deep"),
        ("from pkg.page import write", "pkg.page pkg.page.write pkg/page/templates/page.html"),
        ("from pkg.page import plain", "pkg.page pkg.page.plain"),
    ],
)
def test_the_closure_is_what_the_imports_reach(folder: Path, script: str, expected: str) -> None:
    assert closure(folder, script) == set(expected.split())


def test_what_only_observes_does_not_count(folder: Path) -> None:
    assert closure(folder, "from pkg import lazy, eager\nlazy.first", without=["pkg.lazy"]) == {
        "pkg.eager",
        "pkg.eager.one",
    }


def test_changed_names_are_new_gone_or_other_code(folder: Path) -> None:
    (folder / "script.py").write_text("from pkg import inner, plain\n")
    before = Code([folder]).closure(folder / "script.py")
    (folder / "pkg" / "inner.py").write_text('"""Now with a docstring."""\nx = 1\n')
    assert changed_modules(before, Code([folder]).closure(folder / "script.py")) == []
    (folder / "pkg" / "inner.py").write_text("from pkg import typed\nx = 1\n")
    after = Code([folder]).closure(folder / "script.py")
    assert changed_modules(before, after) == ["pkg.inner", "pkg.typed"]


def test_a_cache_changes_nothing_and_is_made_again_where_it_is_damaged(folder: Path) -> None:
    cache = folder / "cache" / "code.json"
    script = folder / "script.py"
    script.write_text("import pkg\npkg.lazy.last\n")
    expected = Code([folder]).closure(script)
    assert [Code([folder], cache).closure(script) for _ in range(2)] == [expected, expected]
    cache.write_text("{")
    assert Code([folder], cache).closure(script) == expected
    (folder / "pkg" / "inner.py").write_text("x = 2\n")
    assert changed_modules(expected, Code([folder], cache).closure(script)) == ["pkg.inner"]
