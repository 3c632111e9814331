"""A ``space`` section is refused before its network is there, with the words of the compiler."""

import subprocess
import sys

import pytest

import autotailor
import networks
from autotailor.ir.errors import SpaceError
from autotailor.ir.proposal.section_check import check_section

REFUSED = {
    "unknown key": ({"depths": [0, 1]}, r"space: unknown keys \['depths'\]; known are"),
    "another type": ({"depth": "deep"}, "space.depth: expected a list of integers, not 'deep'"),
    "width": ({"width": [0, 0.5]}, r"space.width: ratios \[0, 0.5\] must lie in \(0, 1\]; the weights hold no more"),
    "larger images": (
        {"resolution": [32, 48]},
        r"space.resolution: \[32, 48\] must lie between 1 and the network's 32",
    ),
    "no images": ({"resolution": [0, 32]}, r"space.resolution: \[0, 32\] must lie between"),
    "removed blocks": ({"depth": {"stage1": [-1]}}, r"space.depth: choices \[-1\] count removed blocks, from 0"),
    "stage": ({"depth": {"layer1": [0, 1]}}, r"space.depth: unknown \['layer1'\]; "),
    "depth of the stem": ({"depth": {"stem": [0, 1]}}, r"space.depth: unknown \['stem'\]; "),
    "width of a stage": ({"width": {"stage0": [0.5]}}, r"space.width: unknown \['stage0'\]; "),
    "kind of block": ({"blocks": {"Botleneck": {}}}, "space.blocks: no block is named or of kind 'Botleneck'; "),
    "name of a block": ({"blocks": {"block0": {}}}, "space.blocks: no block is named or of kind 'block0'; "),
    "choice": ({"blocks": {"block1": {"expand_ratio": [0]}}}, "space.blocks.block1.expand_ratio: expected numbers"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_network_has_is_refused_as_the_compiler_refuses_it(case: str) -> None:
    space, message = REFUSED[case]
    with pytest.raises(SpaceError, match=f"^{message}"):
        check_section(space, 32)
    with pytest.raises(SpaceError, match=f"^{message}"):
        autotailor.compile(networks.make("resnet"), space, resolution=32)


@pytest.mark.parametrize("name", networks.SPACES)
def test_the_space_of_a_network_is_accepted(name: str) -> None:
    net = autotailor.compile(networks.make(name), networks.SPACES[name], resolution=32)
    check_section(networks.SPACES[name], 32)
    check_section(net.space_section(), 32)
    check_section({})


def test_checking_imports_no_pytorch() -> None:
    program = (
        "import sys; from autotailor.ir.proposal.section_check import check_section; "
        "check_section({'blocks': {'Bottleneck': {}}}, 32); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
