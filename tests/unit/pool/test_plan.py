"""Plans: what is found as a slice is what PyTorch's indexing takes of the SuperNet's tensors."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autotailor.ir.execution.weight_plan import plan_weight, take_tensor
from autotailor.pool.plan import Candidate, Cut, StorageTag, Vector, _planned, candidates_of, factors, ranges_of
from autotailor.pool.recording import Recorded
from pool_members import some_subnets, supernet

NETWORKS = ("resnet", "mobilenet", "grouped", "transformer", "shuffled")


def indexed(tensor: np.ndarray, cut: Cut) -> torch.Tensor:
    """What PyTorch takes of a tensor, axis by axis."""
    taken = torch.from_numpy(tensor).permute(cut.axes)
    for axis, indices in enumerate(cut.take):
        taken = torch.index_select(taken, axis, torch.from_numpy(indices))
    return taken


@pytest.mark.parametrize("name", NETWORKS)
def test_candidates_are_what_the_elastic_module_takes(name: str) -> None:
    net = supernet(name)
    dimensions = net.propagation.dimensions
    for subnet in some_subnets(net, 5):
        found = candidates_of(net, subnet)
        sizes = net.elastic.sizes(subnet)
        assert len(found) > 10
        for each in found:
            tensor = torch.from_numpy(net.graph.weights[each.tensor])
            expected = take_tensor(tensor, plan_weight(dimensions[each.tensor], sizes))
            cut = Cut(each.tensor, tuple(range(tensor.ndim)), each.take)
            assert torch.equal(indexed(net.graph.weights[each.tensor], cut), expected)
            assert torch.equal(torch.from_numpy(each.value), expected)


@given(st.data(), st.integers(0, 2**32 - 1))
def test_a_scaled_slice_in_another_order_is_found_and_taken_as_torch_takes_it(data: st.DataObject, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = data.draw(st.lists(st.integers(2, 5), min_size=2, max_size=4))
    tensor = rng.normal(size=shape).astype(np.float32)
    take = tuple(np.sort(rng.choice(size, rng.integers(1, size + 1), replace=False)) for size in shape)
    candidate = Candidate("w", take, np.ascontiguousarray(tensor[np.ix_(*take)]))
    other = Candidate("x", take, rng.normal(size=candidate.value.shape).astype(np.float32))
    axes = tuple(rng.permutation(len(shape)).tolist())
    scale = rng.uniform(0.1, 3, len(take[axes[0]])).astype(np.float32)
    values = candidate.value.transpose(axes) * scale.reshape(-1, *(1,) * (len(shape) - 1))
    found = _planned(Recorded(values.reshape(-1), tagged=True), [other, candidate])
    if candidate.value[0].size < 2 or values[0].size < 2:
        return  # a factor for each row takes as much room as the row
    assert isinstance(found, Cut)
    taken = indexed({"w": tensor, "x": tensor}[found.tensor], found)
    ours = taken.reshape(len(taken), -1) * torch.from_numpy(np.ones(1) if found.scale is None else found.scale)[:, None]
    np.testing.assert_allclose(ours.reshape(-1).numpy(), values.reshape(-1), rtol=1e-5, atol=1e-6)


def test_rows_of_a_fused_projection_are_found() -> None:
    rng = np.random.default_rng(0)
    tensor = rng.normal(size=(24, 16)).astype(np.float32)
    candidate = Candidate("qkv", (np.arange(24), np.arange(16)), tensor)
    chosen = np.concatenate([np.arange(8, 12), np.arange(20, 24)])
    found = _planned(Recorded((tensor[chosen] * np.float32(0.25)).reshape(-1), tagged=True), [candidate])
    assert isinstance(found, Cut)
    assert found.scale is not None
    assert ranges_of(found.take[0]) == ((8, 12), (20, 24))
    np.testing.assert_allclose(found.scale, 0.25, rtol=1e-6)


def test_what_is_no_slice_is_kept_as_it_is() -> None:
    rng = np.random.default_rng(0)
    candidate = Candidate("w", (np.arange(4), np.arange(8)), rng.normal(size=(4, 8)).astype(np.float32))
    for values in (rng.normal(size=32), rng.normal(size=8), candidate.value.reshape(-1) + 1e-4):
        found = _planned(Recorded(values.astype(np.float32), tagged=True), [candidate])
        assert isinstance(found, Vector)
        np.testing.assert_array_equal(found.values, values.astype(np.float32))
    assert isinstance(_planned(Recorded(np.empty(0, np.float32)), [candidate]), StorageTag)


def test_factors_are_those_of_the_rows() -> None:
    view = np.array([[1, 2], [3, 4], [0, 0]], np.float32)
    np.testing.assert_array_equal(factors(view * np.array([[2], [-1], [1]], np.float32), view), [2, -1, 0])
    assert factors(view + np.float32(1), view) is None
    assert factors(view[:, :1], view[:, :1]) is None


@given(st.lists(st.integers(0, 30), min_size=1))
def test_ranges_are_the_indices(indices: list[int]) -> None:
    ranges = ranges_of(np.array(indices))
    assert [i for start, end in ranges for i in range(start, end)] == indices
    assert all(one[1] != two[0] for one, two in itertools.pairwise(ranges))
