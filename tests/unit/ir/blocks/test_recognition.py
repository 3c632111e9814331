"""Blocks of networks that no template was written for: what is found, and that SubNets are right."""

import pytest

import autotailor
from acceptance import checks
from branched_networks import NETWORKS, SIDE

EXPECTED = {
    "dense": ({"Branch"}, [3, 2]),
    "sums": ({"Residual"}, [2]),
    "inception": ({"Branch"}, [2, 1]),
    "plain": ({"Plain"}, [2, 2]),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_blocks_and_variables_are_found_and_right(name: str) -> None:
    net = autotailor.compile(NETWORKS[name](), name=name, resolution=SIDE)
    assert {b.kind for b in net.blocks} == EXPECTED[name][0]
    assert [len(s.blocks) for s in net.stages] == EXPECTED[name][1]
    assert not net.static_parts
    assert checks.smallest_share(net) <= 0.5
    module = net.module()
    for subnet in [net.largest(), *checks.subnets(net, 4)]:
        check = checks.check_subnet(net, module, subnet)
        assert check.passed, (subnet, check)


def test_a_sum_with_an_identity_can_be_left_out() -> None:
    net = autotailor.compile(NETWORKS["sums"](), name="sums", resolution=SIDE)
    assert net.space["stage1.depth"].choices == (0, 1)
