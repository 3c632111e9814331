"""From a SuperNet to its unique operators."""

from autotailor.enumeration.operators import (
    UniqueOperator,
    enumerate_operators,
    read_operators,
    write_operators,
)

__all__ = ["UniqueOperator", "enumerate_operators", "read_operators", "write_operators"]
