"""Whether pictures have labels, and for which task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UNKNOWN = -1
"""The label of an image that has none."""
IGNORED = 255
"""What a map of classes has where a pixel does not count."""
BOX = ("left", "top", "right", "bottom", "class", "crowd")
"""What a row of a picture's boxes has, float32: edges as shares of its sides, the number of the class (``UNKNOWN``
where the row is no box), and 1 where the box surrounds a crowd, else 0."""
CLASSIFICATION = "classification"
"""The task of data that name no other."""


def has_labels(section: Mapping[str, Any]) -> bool:
    """Whether the pictures of a section ``data`` of the configuration have labels."""
    return bool(section.get("labels", True))
