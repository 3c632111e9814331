"""The least sum of tables over all SubNets, and what each choice costs beyond that sum, in one pass over the cliques.

For weights w_e of the entries of all cliques, the sum of a SubNet is the sum of the weights of its entries. From the
leaves of the tree of cliques to its root, each clique tells its parent the least sum of the eliminated variables for
each assignment of the separator (a message). What an entry costs more than the message is the *excess* of the entry:

    sum of a SubNet = least sum of the space + sum of the excesses of its entries,      excess >= 0.

Therefore the least sum plus the excesses of the variables that are decided bounds the sum of every SubNet that agrees
with these decisions, from below. ``branches`` searches with these bounds.
"""

from dataclasses import dataclass

import numpy as np

from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import IntArray
from autotailor.search.constrained.cliques import Cliques

FORBIDDEN = 1e18
"""Weight of entries outside the canonical form. It is finite, so that differences of weights stay numbers."""


@dataclass(frozen=True, eq=False)
class Reduced:
    """Some sums of tables over one space.

    Attributes:
        least: the least sum ``[k]``.
        excess: of each entry ``[k, entries]``.
    """

    least: FloatArray
    excess: FloatArray


def reduce(cliques: Cliques, weights: FloatArray) -> Reduced:
    """Passes messages for several weights ``[k, entries]`` at once."""
    total = weights + FORBIDDEN * (1 - cliques.allowed)
    excess, least = np.empty_like(total), np.zeros(len(total))
    for clique, parent in enumerate(cliques.parents):
        own = slice(cliques.starts[clique], cliques.starts[clique + 1])
        table = total[:, own].reshape(len(total), -1, cliques.choices[clique])
        message = table.min(axis=2)
        excess[:, own] = (table - message[:, :, None]).reshape(len(total), -1)
        place = cliques.places[clique]
        if parent is None or place is None:
            least += message[:, 0]
        else:
            total[:, cliques.starts[parent] : cliques.starts[parent + 1]] += message[:, place]
    return Reduced(least, excess)


def best(cliques: Cliques, excess: FloatArray) -> IntArray:
    """Choice indices ``[variables]`` of the SubNet with the least sum, from the excesses ``[entries]`` of one sum."""
    row = np.zeros((1, len(cliques.space)), dtype=np.int64)
    for clique in reversed(range(len(cliques.scopes))):
        count = cliques.choices[clique]
        first = cliques.starts[clique] + int(cliques.separators[clique].number(row)[0]) * count
        row[0, cliques.scopes[clique][-1]] = int(np.argmin(excess[first : first + count]))
    return np.asarray(row[0])
