"""One block in place of several that follow one another (AdaptiveNet, section 4.1; see ``alternatives/merging.py``)."""

from collections.abc import Sequence

from autotailor.ir.alternatives.alternative import Asked, register_alternative
from autotailor.ir.errors import SpaceError
from autotailor.ir.junctions import MERGED

SPANS = (1, 2)
"""How many blocks a merged block can spare; what depends on the choices of more blocks has too large a table."""


@register_alternative
class Merged(Asked):
    """``merged: [1, 2]``: a block in place of two, and of three."""

    kind = MERGED
    usual = (1,)

    def choices(self, value: object) -> tuple[str, ...]:
        if isinstance(value, Sequence) and all(each in SPANS and not isinstance(each, bool) for each in value):
            return tuple(f"{MERGED}:{int(spared)}" for spared in sorted(set(value)))
        raise SpaceError(
            f"space.alternatives.{MERGED}: expected a list of the numbers of blocks that one spares, "
            f"{' or '.join(map(str, SPANS))}, such as {list(SPANS)}, not {value!r}"
        )
