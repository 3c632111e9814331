"""A Gather of all elements in their order becomes a Reshape; a Gather that picks or permutes elements stays."""

import io

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from onnx_text import KERNEL, model_of
from reference import assert_reads, assert_same

STEM = "m = Conv (x, kernel)  p = GlobalAveragePool (m)"
END = "f = Flatten (g)  y = Gemm <transB = 1> (f, fc)"
ORDER = np.arange(4).reshape(1, 4, 1, 1)
WEIGHTS = {"kernel": KERNEL, "fc": [[1.0, -2.0, 3.0, -4.0]] * 5, "all": [-1], "order": ORDER}


def test_all_elements_in_their_order_are_a_reshape() -> None:
    body = f"{STEM}  r = Reshape (p, all)  g = Gather <axis = 0> (r, order)  {END}"
    graph = assert_reads(model_of(body, WEIGHTS))
    assert [node.kind for node in graph.nodes] == ["Conv", "GlobalAveragePool", "Reshape", "Flatten", "Gemm"]
    assert graph.nodes[2].inputs == ("p",)


def test_the_flat_view_stays_for_another_reader() -> None:
    body = f"{STEM}  r = Reshape (p, all)  g = Gather <axis = 0> (r, order)  f = Flatten (g)  s = Add (f, r)"
    graph = assert_reads(model_of(f"{body}  y = Gemm <transB = 1> (s, fc)", WEIGHTS))
    assert [node.kind for node in graph.nodes].count("Reshape") == 2
    assert "Gather" not in {node.kind for node in graph.nodes}


@pytest.mark.parametrize(
    "order", [ORDER[:, ::-1], np.array([[0, 1, 2, 2]]), np.array([[0, 1, 2, -1]])], ids=["reversed", "twice", "behind"]
)
def test_other_positions_stay_a_gather(order: np.ndarray) -> None:
    body = f"{STEM}  r = Reshape (p, all)  g = Gather <axis = 0> (r, order)  {END}"
    graph = assert_reads(model_of(body, {**WEIGHTS, "order": np.ascontiguousarray(order)}))
    assert "Gather" in {node.kind for node in graph.nodes}


def test_a_gather_of_a_map_stays() -> None:
    body = f"{STEM}  g = Gather <axis = 1> (p, rows)  {END}"
    graph = assert_reads(model_of(body, {**WEIGHTS, "rows": [[0, 1, 2, 3]]}))
    assert "Gather" in {node.kind for node in graph.nodes}


class ChannelsLast(nn.Module):
    """Maps that lie channels last in memory when they are pooled, as in the ConvNeXt of torchvision."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.mix, self.pool = nn.Conv2d(3, 16, 3), nn.Linear(16, 32), nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(32, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed = torch.relu(self.mix(torch.relu(self.stem(x)).permute(0, 2, 3, 1)))
        return self.head(self.pool(mixed.permute(0, 3, 1, 2)).flatten(1))


def test_pytorchs_newer_exporter_pools_maps_that_lie_channels_last() -> None:
    exported, file = (
        torch.onnx.export(
            ChannelsLast().eval(), (torch.zeros(1, 3, 16, 16),), dynamo=True, opset_version=18, verbose=False
        ),
        io.BytesIO(),
    )
    assert exported is not None
    exported.save(file)
    model = onnx.load_from_string(file.getvalue())
    assert "Gather" in {node.op_type for node in model.graph.node}
    net = assert_same(model)
    assert not net.static_parts
    assert {variable.name for variable in net.space.variables} >= {"stage1.width", "stage2.width"}
