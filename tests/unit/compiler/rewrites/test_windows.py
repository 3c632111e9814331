"""Windows and queries behind one another in the axis of the batch: the sizes of one image bind no batch."""

import numpy as np
import pytest
import torch
from torch import nn

import autotailor
from onnx_text import HEAD, KERNEL, model_of
from reference import assert_same

FC = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
CUT = "c = Conv <pads = [1, 1, 1, 1]> (x, w)  r = Reshape (c, cut)  s = Transpose <perm = [0, 2, 4, 1, 3, 5]> (r)"
JOIN = "u = Reshape (k, back)  v = Transpose <perm = [0, 3, 1, 4, 2, 5]> (u)  t = Reshape (v, map)"
SHAPES = {"cut": [1, 4, 2, 4, 2, 4], "windows": [4, 4, 4, 4], "back": [1, 2, 2, 4, 4, 4], "map": [1, 4, 8, 8]}


@pytest.mark.parametrize("change", ["k = Add (q, each)", "k = Sub (each, q)", "a = Mul (q, each)  k = Div (a, each)"])
def test_a_constant_of_each_window_meets_the_windows_of_each_image(change: str) -> None:
    weights = {"w": KERNEL, "fc": FC, "each": np.arange(1, 5, dtype=np.float32).reshape(4, 1, 1, 1), **SHAPES}
    net = assert_same(model_of(f"{CUT}  q = Reshape (s, windows)  {change}  {JOIN}  {HEAD}", weights))
    images = torch.randn(3, *net.input_shape[1:], generator=torch.Generator().manual_seed(0))
    module = net.build(net.largest())
    with torch.no_grad():
        torch.testing.assert_close(module(images), torch.cat([module(image[None]) for image in images]))


def test_a_constant_of_one_image_stays_as_it_is() -> None:
    weights = {"w": KERNEL, "fc": FC, "bias": np.ones((1, 4, 1, 1), np.float32)}
    net = assert_same(model_of(f"c = Conv (x, w)  t = Add (c, bias)  {HEAD}", weights))
    assert "Reshape" not in {node.kind for node in net.graph.nodes}


class OneQuery(nn.Module):
    """Attention pooling: the mean of all tokens asks the tokens, the batch stands second."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.attention, self.head = nn.Conv2d(3, 16, 3, 4, 1), nn.MultiheadAttention(16, 2), nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.stem(x).flatten(2).permute(2, 0, 1)
        return self.head(self.attention(tokens.mean(0, keepdim=True), tokens, tokens, need_weights=False)[0][0])


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("dynamo", [False, True])
def test_attention_with_one_query_runs_with_any_batch(dynamo: bool, tmp_path: object) -> None:
    path = f"{tmp_path}/pool.onnx"
    network = OneQuery().eval()
    torch.onnx.export(network, (torch.zeros(1, 3, 16, 16),), path, dynamo=dynamo, external_data=False)
    images = torch.randn(3, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    net = autotailor.compile(path)
    with torch.no_grad():
        torch.testing.assert_close(net.build(net.largest())(images), network(images), rtol=1e-4, atol=1e-5)
    assert "heads" in {variable.kind for variable in net.space.variables}
