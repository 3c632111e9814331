"""Whether pictures have labels, and the name that the share of right answers then has in tables, figures and messages.

Where pictures have labels, an answer is right if it is the label, and the share is the accuracy. Where pictures have no
labels (``labels: false`` in the section ``data``), an answer is right if it is that of the original network, and the
share is the agreement with the original network. Names of columns and files stay the same in both cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Score:
    """The share of right answers.

    Attributes:
        name: of the share.
        best: what a network with the highest share is called.
        meaning: one sentence for a person who sees the name for the first time; "" where the name is common knowledge.
    """

    name: str
    best: str
    meaning: str = ""

    @property
    def title(self) -> str:
        """The name at the beginning of a sentence or a heading."""
        return self.name.capitalize()


UNKNOWN = -1
"""The label of an image that has none."""
ACCURACY = Score("accuracy", "most accurate")
AGREEMENT = Score(
    "agreement",
    "most faithful",
    "The pictures have no labels: agreement is the share of the pictures for which a network gives the same answer as "
    "the original network.",
)


def has_labels(section: Mapping[str, Any]) -> bool:
    """Whether the pictures of a section ``data`` of the configuration have labels."""
    return bool(section.get("labels", True))


def score(section: Mapping[str, Any]) -> Score:
    """The score of the data that a section ``data`` of the configuration describes."""
    return ACCURACY if has_labels(section) else AGREEMENT
