"""A space whose depth gates the variables of two blocks, and all its SubNets."""

import itertools

from autotailor.ir.space.gate import Gate
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Space, Variable

SPACE = Space(
    (
        Variable("resolution", "resolution", (16, 32), 1),
        Variable("stage1.depth", "depth", (0, 1, 2), 0, least=2),
        Variable("block1.expand_ratio", "expand_ratio", (2, 4), 1),
        Variable("block2.expand_ratio", "expand_ratio", (2, 3, 4), 2, Gate(("stage1.depth",), (True, True, False))),
        Variable("block3.expand_ratio", "expand_ratio", (2, 4), 1, Gate(("stage1.depth",), (True, False, False))),
    )
)


def all_subnets() -> list[SubNet]:
    return [SubNet(SPACE, i) for i in itertools.product(*(range(len(v.choices)) for v in SPACE))]
