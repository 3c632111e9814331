"""Slices that together are a Split become one; slices with a gap, an overlap or a step stay slices."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import autotailor
from onnx_text import HEAD, KERNEL, model_of
from reference import assert_reads

STEM = "m = Conv (x, kernel)"
NUMBERS = {**{f"n{i}": [i] for i in range(7)}, "end": [2**63 - 1], "minus": [-2], "kernel": KERNEL}

SPLIT = {
    "halves": ("a = Slice (m, n0, n2, n1)  b = Slice (m, n2, n4, n1)  t = Sub (a, b)", [2, 2], 1),
    "unequal pieces": (
        "a = Slice (m, n0, n1, n1)  b = Slice (m, n1, n4, n1)  c = Mul (b, a)  t = Concat <axis = 1> (c, a)", [1, 3], 1,
    ),
    "out of order": ("b = Slice (m, n2, n4, n1)  a = Slice (m, n0, n2, n1)  t = Sub (a, b)", [2, 2], 1),
    "with a reader between": (
        "a = Slice (m, n0, n2, n1)  r = Relu (a)  b = Slice (m, n2, n4, n1)  t = Sub (r, b)", [2, 2], 1,
    ),
    "to the end": ("a = Slice (m, n0, n2, n1)  b = Slice (m, n2, end, n1)  t = Sub (a, b)", [2, 2], 1),
    "counted from the end": ("a = Slice (m, n0, minus, n1)  b = Slice (m, minus, end, n1)  t = Sub (a, b)", [2, 2], 1),
    "another axis": ("a = Slice (m, n0, n3, n2)  b = Slice (m, n3, n6, n2)  t = Sub (a, b)", [3, 3], 2),
    "a step of one": ("a = Slice (m, n0, n2, n1, n1)  b = Slice (m, n2, n4, n1, n1)  t = Sub (a, b)", [2, 2], 1),
}  # fmt: skip


def heads(channels: int) -> str:
    """A classifier of so many channels."""
    return HEAD.replace("fc", f"fc{channels}")


def weights() -> dict[str, object]:
    return {**NUMBERS, **{f"fc{n}": [[float(i + j) for i in range(n)] for j in range(5)] for n in (1, 2, 3, 4)}}


@pytest.mark.parametrize("case", SPLIT)
def test_slices_that_cover_an_axis_become_one_split(case: str) -> None:
    body, sizes, axis = SPLIT[case]
    channels = 4 if axis == 2 or "Concat" in body else 2
    graph = assert_reads(model_of(f"{STEM}  {body}  {heads(channels)}", weights()))
    kinds = [node.kind for node in graph.nodes]
    assert (kinds.count("Split"), kinds.count("Slice")) == (1, 0)
    split = next(node for node in graph.nodes if node.kind == "Split")
    assert (split.get("axis"), list(split.get("split"))) == (axis, sizes)


def test_two_families_become_two_splits() -> None:
    body = (
        "a = Slice (m, n0, n2, n1)  b = Slice (m, n2, n4, n1)  s = Sub (a, b)  "
        "c = Slice (s, n0, n3, n2)  d = Slice (s, n3, n6, n2)  t = Sub (c, d)"
    )
    kinds = [node.kind for node in assert_reads(model_of(f"{STEM}  {body}  {heads(2)}", weights())).nodes]
    assert (kinds.count("Split"), kinds.count("Slice")) == (2, 0)


STAYS = {
    "a gap": "a = Slice (m, n0, n1, n1)  b = Slice (m, n3, n4, n1)  t = Sub (a, b)",
    "an overlap": "a = Slice (m, n0, n3, n1)  b = Slice (m, n1, n4, n1)  t = Sub (a, b)",
    "an end before the axis's": "a = Slice (m, n0, n1, n1)  b = Slice (m, n1, n2, n1)  t = Sub (a, b)",
    "a piece alone": "a = Slice (m, n0, end, n1)  t = Relu (a)",
    "the same piece twice": (
        "a = Slice (m, n0, n2, n1)  b = Slice (m, n0, n2, n1)  "
        "c = Slice (m, n2, n4, n1)  d = Add (a, b)  t = Mul (d, c)"
    ),
    "steps of two": "a = Slice (m, n0, n2, n1, n2)  b = Slice (m, n2, n4, n1, n2)  t = Sub (a, b)",
    "two axes at once": (
        "a = Slice (m, both, ends, axes)  b = Slice (m, n2, n4, n1)  c = Slice (b, n0, n3, n2)  t = Sub (a, c)"
    ),
}


@pytest.mark.parametrize("case", STAYS)
def test_slices_that_are_no_split_stay_slices(case: str) -> None:
    body = STAYS[case]
    more = {"both": [0, 0], "ends": [2, 3], "axes": [1, 2]}
    channels = {"a gap": 1, "an overlap": 3, "an end before the axis's": 1, "a piece alone": 4, "steps of two": 1}.get(
        case, 2
    )
    model = model_of(f"{STEM}  {body}  {heads(channels)}", {**weights(), **more})
    kinds = [node.kind for node in assert_reads(model).nodes]
    assert "Split" not in kinds


class Chunked(nn.Module):
    """Attention over rows with q, k and v as chunks of channels, and a slice that overlaps them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.project, self.head = nn.Conv2d(3, 12, 8, 8), nn.Linear(12, 36), nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x).flatten(2).transpose(1, 2)
        fused = self.project(x)
        q, k, v = (part.view(part.shape[0], -1, 3, 4).transpose(1, 2) for part in fused.chunk(3, -1))
        mixed = F.softmax(q @ k.transpose(2, 3) / 2.0, -1) @ v
        x = x + mixed.transpose(1, 2).reshape(x.shape[0], -1, 12)
        return self.head(x.mean(1)) + fused[:, 0, :5]


def test_chunks_of_pytorch_stay_elastic_and_exact() -> None:
    torch.manual_seed(0)
    network = Chunked().eval()
    net = autotailor.compile(network, resolution=32)
    assert [n.kind for n in net.graph.nodes].count("Split") == 1
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(net.build(net.largest())(x), network(x), atol=1e-5, rtol=1e-5)
