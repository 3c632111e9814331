"""Whether pictures have labels, and for which task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UNKNOWN = -1
"""The label of an image that has none."""
IGNORED = 255
"""What a map of classes has where a pixel does not count."""
CLASSIFICATION = "classification"
"""The task of data that name no other."""


def has_labels(section: Mapping[str, Any]) -> bool:
    """Whether the pictures of a section ``data`` of the configuration have labels."""
    return bool(section.get("labels", True))
