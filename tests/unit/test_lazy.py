"""Names that a package imports on first use."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

import autotailor

FILE = """
from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from math import sqrt
    from math import sqrt as root

__getattr__ = attach(__name__)
"""


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    (tmp_path / "made_package.py").write_text(FILE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "made_package", raising=False)
    return importlib.import_module("made_package")


def test_a_name_is_imported_on_first_use_and_kept(package: ModuleType) -> None:
    assert "sqrt" not in vars(package)
    assert package.sqrt(4.0) == package.root(4.0) == 2.0
    assert "sqrt" in vars(package)
    with pytest.raises(AttributeError, match="module 'made_package' has no attribute 'cube'"):
        package.cube  # noqa: B018


def test_names_can_be_completed_before_their_first_use(package: ModuleType) -> None:
    assert {"root", "sqrt", "__name__"} <= set(dir(package))
    assert set(autotailor.__all__) <= set(dir(autotailor))
