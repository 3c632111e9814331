"""Choices that leave no network are refused, or never proposed."""

import itertools
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import autotailor
import networks
from acceptance import checks
from autotailor.ir.dimensions.dimension import Atom, Resolution, Sum, Window
from autotailor.ir.errors import SpaceError
from autotailor.ir.propagation import Need
from autotailor.ir.proposal.legality import fitting, least_resolution
from autotailor.ir.space import joint_sizes
from autotailor.ir.space.architecture import Architecture, Fixed
from autotailor.ir.space.variable import Space, Variable
from autotailor.ir.supernet import UNFUSED

SIDE = 64


def classifier(last: nn.Module, width: int = 16) -> nn.Module:
    """Three strided units to maps of 8x8 pixels (from 64), one more layer, and a classifier over what it leaves."""
    torch.manual_seed(0)
    units = [nn.Sequential(*networks.conv_bn(c, 16, 3, 2), nn.ReLU()) for c in (3, 16, 16)]
    return nn.Sequential(*units, last, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 5)).eval()


LASTS = {
    "a convolution over the whole map": (nn.Conv2d(16, 24, 8), 24, 57, "what Conv"),
    "a convolution over most of the map": (nn.Conv2d(16, 24, 5), 24, 33, "what Conv"),
    "a pooling that overhangs": (nn.MaxPool2d(6, 3, ceil_mode=True), 16, 25, "what MaxPool"),
    "a dilated pooling": (nn.MaxPool2d(2, 1, 1, 3), 16, 17, "would hold pads alone"),
    "a reflection": (nn.ReflectionPad2d(5), 16, 41, "repeats 5 pixels"),
}


@pytest.mark.parametrize("case", LASTS)
def test_a_resolution_that_a_window_does_not_fit_into_is_refused(case: str) -> None:
    layer, width, least, reason = LASTS[case]
    network = classifier(layer, width)
    with pytest.raises(SpaceError, match=f"resolution {least - 1} does not fit: .*{reason}.* at least {least} do"):
        autotailor.compile(network, {"resolution": [least - 1]}, resolution=SIDE)
    net = autotailor.compile(network, {"resolution": [least]}, resolution=SIDE)
    with torch.no_grad():
        logits = net.build(net.smallest())(torch.randn(2, 3, least, least))
    assert logits.shape == (2, 5)
    assert logits.isfinite().all()


def test_only_resolutions_that_fit_are_proposed() -> None:
    proposed = autotailor.compile(classifier(nn.Conv2d(16, 24, 7), 24), resolution=SIDE)
    assert proposed.space["resolution"].choices == (56, 64)
    whole = autotailor.compile(classifier(nn.Conv2d(16, 24, 8), 24), resolution=SIDE)
    assert "resolution" not in whole.space.positions
    assert len(whole.space) == len(proposed.space) - 1


def test_a_proposed_space_written_down_is_the_same_space() -> None:
    net = autotailor.compile(classifier(nn.Conv2d(16, 24, 7), 24), resolution=SIDE)
    again = autotailor.compile(classifier(nn.Conv2d(16, 24, 7), 24), net.space_section(), resolution=SIDE)
    assert again.space.variables == net.space.variables


@pytest.mark.parametrize("name", sorted(networks.NETWORKS | networks.MORE_NETWORKS))
@pytest.mark.parametrize("proposed", [True, False])
def test_two_hundred_subnets_have_shapes(name: str, proposed: bool) -> None:
    net = autotailor.compile(networks.make(name), None if proposed else networks.SPACES.get(name, {}), resolution=32)
    checks.check_every_shape(net, 200)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.lists(st.sets(st.integers(1, 6), min_size=1), min_size=1, max_size=4),
    st.integers(1, 24),
    st.integers(1, 3),
    st.booleans(),
)
def test_what_is_left_fits_jointly(sizes: list[set[int]], shrink: int, stride: int, derived: bool) -> None:
    atoms = [Atom(f"a{i}", max(own)) for i, own in enumerate(sizes)]
    variables = tuple(
        Variable(atom.name, "width", tuple(sorted(own)), len(own) - 1) for atom, own in zip(atoms, sizes, strict=True)
    )
    window = Window(Sum(tuple(atoms)), min(shrink, sum(atom.meta for atom in atoms)), stride)

    def fits(space: Space) -> bool:
        choices = itertools.product(*(variable.choices for variable in space))
        return all(window.size(dict(zip(atoms, own, strict=True)).__getitem__) >= 1 for own in choices)

    architecture = Architecture(Space(variables), {atom: Fixed(atom.name) for atom in atoms})
    with mock.patch.object(joint_sizes, "TABLE_LIMIT", 1 if derived else joint_sizes.TABLE_LIMIT):
        left, refused = fitting(architecture, [Need(window, 1, "")])
    assert fits(left.space)
    assert bool(refused) != fits(architecture.space)
    gone = {(v.name, c) for v in variables for c in v.choices} - {(v.name, c) for v in left.space for c in v.choices}
    assert gone == {(r.variable, r.choice) for r in refused}


def test_the_least_resolution_is_that_of_every_need() -> None:
    side = Resolution("resolution", 64)
    halved = Window(side, 1, 2)
    needs = [Need(Window(halved, 5, 1), 1, ""), Need(halved, 9, "")]
    assert least_resolution(needs, side, 1) == 17
    assert least_resolution(needs, side, 4) == 20


def test_a_space_whose_operators_are_too_many_to_list_is_refused_or_proposed_smaller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = autotailor.compile(networks.make("mobilenet"), resolution=32)
    assert max(len(place.operators) for place in plain.places(UNFUSED)) > 12
    monkeypatch.setattr(joint_sizes, "TABLE_LIMIT", 12)
    monkeypatch.setattr(joint_sizes, "HARD_LIMIT", 12)
    with pytest.raises(SpaceError, match=r"variables jointly \(.*\), with \d+ choices together; offer fewer choices"):
        autotailor.compile(networks.make("mobilenet"), plain.space_section(), resolution=32)
    net = autotailor.compile(networks.make("mobilenet"), resolution=32)
    assert net.operators()
    assert net.space.num_modifications > plain.space.num_modifications / 2
