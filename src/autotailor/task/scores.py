"""What is reported of a network: the name of a score, and its meaning.

Every score is a number of percent, and the more the better: of most tasks the mean over pictures of values from 0 to 1
(``Judgement``, ``Task.total``). Where it is none, sensitivities, predictions and the search still compute with that
mean, which has a name of its own. Names of columns and files stay ``accuracy`` for all scores.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    """One number that says how good a network is.

    Attributes:
        name: of the number.
        best: what a network with the best score is called.
        meaning: one sentence for a person who sees the name for the first time; "" where the name is common knowledge.
        compares: whether networks are compared with the original network, because the pictures have no labels.
        mean_name: of the mean over pictures, where the score is another number.
    """

    name: str
    best: str
    meaning: str = ""
    compares: bool = False
    mean_name: str = ""

    @property
    def mean(self) -> str:
        """The name of the mean over pictures with which sensitivities, predictions and the search compute."""
        return self.mean_name or self.name

    @property
    def title(self) -> str:
        """The name at the beginning of a sentence or a heading."""
        return _first_large(self.name)

    @property
    def mean_title(self) -> str:
        """The name of the mean at the beginning of a sentence or a heading."""
        return _first_large(self.mean)


def _first_large(name: str) -> str:
    """A name with a large first letter, except where its first word is a symbol, as mIoU is."""
    return name if name.split()[0] != name.split()[0].lower() else name[0].upper() + name[1:]


ACCURACY = Score("accuracy", "most accurate")
AGREEMENT = Score(
    "agreement",
    "most faithful",
    "The pictures have no labels: agreement is the share of the pictures for which a network gives the same answer as "
    "the original network.",
    compares=True,
)
