"""Enumeration of a SuperNet's unique fused operators.

The names below are imported on first use, see ``autotailor.lazy``.
"""

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.enumeration.cover import UniqueOperator, enumerate_operators, read_operators, write_operators

__getattr__ = attach(__name__)
