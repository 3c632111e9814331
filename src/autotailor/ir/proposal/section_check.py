"""Checks a ``space`` section while its network is not there yet, so that its errors come before any training."""

import re
from collections.abc import Mapping
from typing import Any

from autotailor.ir.blocks.kinds import BLOCK_NAME, kinds
from autotailor.ir.errors import SpaceError
from autotailor.ir.proposal.request import ALL, SpaceRequest

STAGE_NAME = re.compile(r"stage[1-9][0-9]*")


def check_section(section: Mapping[str, Any], resolution: int | None = None) -> None:
    """Refuses a ``space`` section that fits no network of this resolution.

    What depends on the network is refused when the network is compiled: how many stages and blocks it has, and which
    choices they offer.

    Args:
        section: of the configuration.
        resolution: side of the images of the unmodified network (pixels); None where it is not known.

    Raises:
        SpaceError: a key or a name is unknown, or a value has another form or lies outside of its range.
    """
    request = SpaceRequest.from_config(section)
    if resolution is not None:
        request.check_resolutions(resolution)
    for key, by_owner, ends in (("depth", request.depth, ()), ("width", request.width, ("stem", "head"))):
        names = set(by_owner or ()) - {ALL, *ends}
        if unknown := sorted(name for name in names if not STAGE_NAME.fullmatch(name)):
            owners = ", ".join((*ends, "stage1, stage2 ..."))
            raise SpaceError(f"space.{key}: unknown {unknown}; a network has {owners}")
    own = [name for name in request.alternatives if name != ALL]
    named = {"blocks": list(request.blocks or ()), "alternatives.blocks": own}
    for where, name in ((where, name) for where, names in named.items() for name in names):
        if name not in kinds() and not BLOCK_NAME.fullmatch(name):
            raise SpaceError(
                f"space.{where}: no block is named or of kind {name!r}; known are {', '.join(sorted(kinds()))}, and "
                f"block1, block2 ..."
            )
