"""Names that a package imports on first use."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

import autotailor
from autotailor.lazy import attach


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = ModuleType("made_package")
    monkeypatch.setitem(sys.modules, "made_package", made)
    made.__getattr__ = attach("made_package", {"sqrt": "math", "root": "math:sqrt"})  # type: ignore[method-assign]
    return made


def test_a_name_is_imported_on_first_use_and_kept(package: ModuleType) -> None:
    assert "sqrt" not in vars(package)
    assert package.sqrt(4.0) == package.root(4.0) == 2.0
    assert "sqrt" in vars(package)
    with pytest.raises(AttributeError, match="module 'made_package' has no attribute 'cube'"):
        package.cube  # noqa: B018


def test_names_can_be_completed_before_their_first_use(package: ModuleType) -> None:
    assert {"root", "sqrt", "__name__"} <= set(dir(package))
    assert set(autotailor.__all__) <= set(dir(autotailor))
