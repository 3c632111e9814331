"""A network returns several tensors under names of its own, and is asked for one of them by name."""

from typing import Any, NamedTuple

import onnx_ir as ir
import pytest
import torch
from torch import nn

import autotailor
from autotailor.compiler.sources.outputs import keep_output
from autotailor.ir.errors import GraphError
from onnx_text import model_of


class Heads(NamedTuple):
    logits: torch.Tensor
    distillation: torch.Tensor


class Several(nn.Module):
    """Two heads, whose logits it returns as a function arranges them."""

    def __init__(self, arrange: Any) -> None:
        super().__init__()
        self.stem, self.first, self.second = nn.Conv2d(3, 8, 3), nn.Linear(8, 5), nn.Linear(8, 7)
        self.arrange = arrange

    def forward(self, x: torch.Tensor) -> Any:
        x = self.stem(x).mean((2, 3))
        return self.arrange(self.first(x), self.second(x))


RETURNED = {
    "a mapping": (lambda a, b: {"logits": a, "distillation": b}, "distillation", 7, ["logits", "distillation"]),
    "a named tuple": (Heads, "logits", 5, ["logits", "distillation"]),
    "a tuple": (lambda a, b: (b, a), 1, 5, ["output.0", "output.1"]),
    "lists": (lambda a, b: {"heads": [a, b]}, None, 0, ["heads.0", "heads.1"]),
}


@pytest.mark.parametrize("case", RETURNED)
def test_the_logits_are_taken_by_name(case: str) -> None:
    arrange, output, classes, names = RETURNED[case]
    network = Several(arrange).eval()
    net = autotailor.compile(network, {}, resolution=16, output=output)
    assert net.num_classes == classes
    assert not isinstance(network(torch.zeros(1, 3, 16, 16)), torch.Tensor), "the caller's module is left alone"
    whole = autotailor.compile(network, {}, resolution=16)
    assert (list(whole.names), whole.num_classes) == (["input", *names], 0)
    with pytest.raises(GraphError, match=rf"{names[0]}, {names[1]}.*where one of them is that row, name it as model"):
        autotailor.compile(network, {}, resolution=16, num_classes=5)


def test_an_output_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(GraphError, match=r"logits \[1, 5\], distillation \[1, 7\], and no logit; set model.output to"):
        autotailor.compile(Several(Heads), {}, resolution=16, output="logit")
    with pytest.raises(GraphError, match=r"no output called logits; remove model\.output"):
        autotailor.compile(
            nn.Sequential(nn.Conv2d(3, 8, 3), nn.AdaptiveAvgPool2d(1)), {}, resolution=16, output="logits"
        )


def test_a_file_keeps_the_output_that_is_named() -> None:
    model = ir.from_proto(
        model_of(
            "r = Relu (x)  y = GlobalAveragePool (x)  z = GlobalMaxPool (r)",
            outputs="float[n, c, 1, 1] y, float[n, c, 1, 1] z",
        )
    )
    with pytest.raises(GraphError, match=r"it has no output logits; set model\.output to one of y, z"):
        keep_output(model, "logits")
    keep_output(model, "y")
    assert [node.op_type for node in model.graph] == ["GlobalAveragePool"]
