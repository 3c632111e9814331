"""A module is compared with its export, so that a branch on the values of an image is not lost without a word."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

import autotailor
import networks
from autotailor.ir.errors import GraphError

Tensor = torch.Tensor


class Trunk(nn.Module):
    """A network that passes its maps through a function of the test."""

    def __init__(self, inner: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 5)
        self.inner = inner

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.inner(torch.relu(self.norm(self.conv(image)))).mean((2, 3)))


@pytest.mark.parametrize(
    "branch",
    [
        lambda x: x if x.mean() < 0.2 else -x,
        lambda x: x if x.amax() < 20 else x / x.amax(),  # taken by large images alone
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_branch_on_the_values_of_the_image_is_refused(branch: Callable[[Tensor], Tensor], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    with pytest.raises(GraphError, match=r"outputs differ from those of its export by \d+%.*torch\.where"):
        autotailor.compile(Trunk(branch).eval().to(dtype), resolution=16)


def test_the_remedy_is_accepted() -> None:
    torch.manual_seed(0)
    network = Trunk(lambda x: torch.where(x.mean((1, 2, 3), keepdim=True) < 0.2, x, -x)).eval()
    assert autotailor.compile(network, resolution=16).num_classes == 5
    torch.manual_seed(0)
    of_the_batch = Trunk(lambda x: torch.where(x.mean() < 0.2, x, -x)).eval()
    with pytest.raises(GraphError, match="depends on the rest of the batch"):
        autotailor.compile(of_the_batch, resolution=16)


def refuses_large_values(x: Tensor) -> Tensor:
    if x.amax() > 2:
        raise ValueError("too bright")
    return x


def test_images_that_the_network_refuses_are_left_out() -> None:
    torch.manual_seed(0)
    assert autotailor.compile(Trunk(refuses_large_values).eval(), resolution=16).num_classes == 5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", ["resnet", "mobilenet"])
def test_rounding_of_other_types_is_no_difference(name: str, dtype: torch.dtype) -> None:
    assert autotailor.compile(networks.make(name).to(dtype), resolution=32).num_classes


def test_chaotic_weights_are_no_difference() -> None:
    """Layers that amplify the rounding of bfloat16 until no digit of the output is left."""
    torch.manual_seed(0)
    layers = [layer for _ in range(8) for layer in (nn.Conv2d(8, 8, 3, padding=1, bias=False), Sine())]
    network = Trunk(nn.Sequential(*layers)).eval().to(torch.bfloat16)
    assert autotailor.compile(network, resolution=16).num_classes == 5


def scaled(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().sum(1, keepdim=True) + 1e-5)


def test_squares_that_overflow_in_float16_are_no_difference() -> None:
    torch.manual_seed(0)
    network = Trunk(scaled).eval()
    network.conv.weight.data.mul_(20)
    assert autotailor.compile(network.to(torch.float16), resolution=16).num_classes == 5


class Sine(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(10 * x)


@pytest.mark.parametrize("taken", [True, False])
def test_parameters_that_no_image_reaches_are_named(taken: bool, caplog: pytest.LogCaptureFixture) -> None:
    rare = nn.Conv2d(8, 8, 1)
    network = Trunk(lambda x: rare(x) if taken or x.shape[-1] > 100 else x)
    network.rare = rare
    autotailor.compile(network.eval(), {}, resolution=16)
    said = "an image reaches none of the parameters rare.weight, rare.bias, so that no SubNet has them"
    assert (said in caplog.text) != taken
