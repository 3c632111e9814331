"""Operators that keep their shapes are computed as onnxruntime computes them, whatever changes around them."""

import onnx
import pytest
import torch
import torch.nn.functional as F
from onnx import TensorProto
from torch import nn

import autotailor
from acceptance import checks
from autotailor.ir.errors import GraphError
from autotailor.ir.execution.onnx_writer import to_onnx
from autotailor.ir.graph import OUTPUT
from operator_cases import Case, assert_all_forms_agree, case

NUMBERS = f"y = Cast <to = {TensorProto.FLOAT}> (i)"


def rigid(body: str, **weights: object) -> Case:
    """A case in which the first operator keeps its shape, and with it everything else."""
    kind = body.partition("= ")[2].partition(" ")[0]
    return case(body, static=kind, resizes=False, shrinks=False, **weights)


CASES = {
    "lower triangle": rigid("y = Trilu <upper = 0> (t)"),
    "upper triangle, shifted": rigid("y = Trilu (t, k)", k=-2),
    "running sum": rigid("y = CumSum (t, axis)", axis=1),
    "running sum before each, backwards": rigid("y = CumSum <exclusive = 1, reverse = 1> (t, axis)", axis=1),
    "index of the largest": rigid(f"i = ArgMax <axis = 1> (t)  {NUMBERS}"),
    "last index of the smallest": rigid(f"i = ArgMin <axis = 1, select_last_index = 1> (t)  {NUMBERS}"),
    "largest channel": rigid("y = Hardmax <axis = 1> (t)"),
    "largest channels": rigid("y, i = TopK <axis = 1> (t, k)", k=[5]),
    "smallest channels": rigid("y, i = TopK <axis = 1, largest = 0> (t, k)", k=[3]),
}


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_while_the_operator_keeps_its_shape(name: str) -> None:
    assert_all_forms_agree(CASES[name])


class Folded(nn.Module):
    """A convolution whose channels are 3x3 patches of an image, and a classifier over that image.

    The patches are added up where they overlap (Fold of PyTorch, Col2Im of ONNX), as in VOLO's outlook attention.
    """

    def __init__(self, padding: int, stride: int) -> None:
        super().__init__()
        self.patches, self.head = nn.Conv2d(3, 16 * 9, 3, 2, 1), nn.Linear(16, 5)
        self.padding, self.stride = padding, stride

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        side = 7 * self.stride + 3 - 2 * self.padding
        x = F.fold(self.patches(x).flatten(2), (side, side), 3, padding=self.padding, stride=self.stride)
        return self.head(x.square().mean((2, 3)))


@pytest.mark.parametrize(("padding", "stride"), [(0, 1), (1, 2)])
def test_folded_patches_are_those_of_pytorch(padding: int, stride: int) -> None:
    torch.manual_seed(0)
    network = Folded(padding, stride).eval()
    net = autotailor.compile(network, resolution=16)
    assert [part.kind for part in net.static_parts] == ["Col2Im"]
    x = torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        expected = network(x)
        torch.testing.assert_close(net.build(net.largest())(x), expected, rtol=1e-4, atol=1e-4)
    written = checks.run_onnx(to_onnx(net.slice(net.largest())), x[:1].numpy())[OUTPUT]
    assert checks.relative(written, expected[:1].numpy()) < checks.TOLERANCE


def test_uneven_pads_are_refused_by_name() -> None:
    rows = "{ flat = Constant <value_ints: ints = [0, 12, -1]> () m = Conv <strides = [2, 2]> (x, k)"
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[1, 3, 18, 18] x) => (float[1, 3] y)
        <float[12, 3, 2, 2] k = {{{", ".join(["0.5"] * 144)}}}>
        {rows} s = Constant <value_ints: ints = [8, 8]> () b = Constant <value_ints: ints = [2, 2]> ()
          p = Reshape (m, flat) i = Col2Im <pads = [0, 0, 2, 2]> (p, s, b)
          a = GlobalAveragePool (i) y = Flatten (a) }}"""
    with pytest.raises(GraphError, match="Col2Im of 2 axes with pads"):
        autotailor.compile(onnx.parser.parse_model(text))
