"""Which alternatives of blocks a network can have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from autotailor.ir.alternatives.alternative import alternatives, of_maps
from autotailor.ir.alternatives.kinds.merged import SPANS
from autotailor.ir.alternatives.merging import find_merges
from autotailor.ir.alternatives.rebuilding import of_blocks, rebuildable
from autotailor.ir.blocks.recognition import find_blocks
from autotailor.ir.junctions import MERGED

if TYPE_CHECKING:
    from autotailor.ir.supernet import SuperNet


def fitting(net: SuperNet) -> dict[str, int]:
    """For how many blocks there are alternatives, by kind; kinds that no block can have are left out."""
    counts = {
        kind: sum(any(each.fits(net.original, node) for node in block.nodes) for block in net.blocks)
        for kind, each in of_maps().items()
    }
    blocks = find_blocks(net.original, net.propagation)
    interiors = [each for block in blocks if (each := rebuildable(net.original, net.propagation, block)) is not None]
    counts |= {kind: sum(map(rebuilt.fits, interiors)) for kind, rebuilt in of_blocks().items()}
    counts[MERGED] = len({block for block, _, reason in merges(net) if not reason})
    return {kind: count for kind, count in counts.items() if count}


def usual(net: SuperNet) -> dict[str, Any]:
    """The section ``space.alternatives`` that asks for the usual choices of all kinds that a network can have."""
    asked = {kind: alternatives()[kind].usual for kind in fitting(net)}
    return {kind: value if isinstance(value, bool) else list(value) for kind, value in asked.items()}


def merges(net: SuperNet) -> list[tuple[str, str, str]]:
    """First block of each range that merges, or could if it were not for a reason; the choice; the reason."""
    blocks = find_blocks(net.original, net.propagation)
    ranges = (
        (b.name, find_merges(net.original, net.propagation, blocks, i, n)) for i, b in enumerate(blocks) for n in SPANS
    )
    return [(name, merge.choice, merge.reason) for name, merge in ranges if merge is not None]
