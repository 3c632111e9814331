"""PyTorch networks that one exporter or both cannot export."""

import re
import subprocess
import sys

import pytest
import torch
import torchvision
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import autotailor
from acceptance import checks
from autotailor.compiler.sources.export import AdaptivePools
from autotailor.ir.errors import GraphError

NETWORK = """
import torch
import autotailor
try:
    autotailor.compile(torch.nn.Linear(3, 3))
except autotailor.AutoTailorError as error:
    print(error)
"""


def test_a_network_that_takes_no_image_is_told_in_one_line_and_without_pytorchs_log() -> None:
    done = subprocess.run([sys.executable, "-c", NETWORK], capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == 1
    assert "Linear cannot be exported from an image of shape [1, 3, 224, 224]: addmm: mat1 and mat2" in done.stdout
    assert done.stderr == ""


def test_a_graph_that_only_the_newer_exporter_knows_is_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    """What `inspect --yaml` prints is a file; the classic exporter's log would stand in front of it."""
    normed = nn.utils.parametrizations.spectral_norm(nn.Conv2d(3, 4, 3))
    network = nn.Sequential(normed, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5)).eval()
    assert autotailor.compile(network, resolution=16).num_classes == 5
    assert capfd.readouterr().out == ""


class Strange(nn.Conv2d):
    """Runs, and no exporter knows its last step."""

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvals(super().forward(image)[..., :3, :3]).real


def test_the_size_that_a_network_is_made_for_is_no_remedy_where_the_size_is_not_the_reason() -> None:
    with pytest.raises(GraphError, match="Strange cannot be exported") as refused:
        autotailor.compile(Strange(3, 4, 3), resolution=32)
    assert "made for" not in str(refused.value)


class Undecided(nn.Module):
    """Takes mean and variance of each batch, or drops at random, in eval mode, too."""

    def __init__(self, drops: bool) -> None:
        super().__init__()
        self.drops, self.first = drops, nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8, track_running_stats=drops)
        self.head = nn.Linear(8, 4)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        features = self.norm(self.first(image)).mean((2, 3))
        return self.head(nn.functional.dropout(features) if self.drops else features)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("drops", "remedy"), [(False, "track_running_stats=True"), (True, "F.dropout with training=self.training")]
)
def test_what_a_network_does_in_eval_mode_too_is_told_with_its_remedy(drops: bool, remedy: str) -> None:
    with pytest.raises(GraphError, match=re.escape(remedy)):
        autotailor.compile(Undecided(drops).eval(), resolution=32)


class Picky(nn.Sequential):
    """Takes images of 8 x 8 pixels alone."""

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        assert image.shape[2:] == (8, 8)
        return super().forward(image)


@pytest.mark.parametrize("side", [8, 16])
@pytest.mark.parametrize("training", [False, True])
def test_every_part_of_a_module_keeps_its_mode(training: bool, side: int) -> None:
    """Frozen BatchNorm in a network in training, or a part in training in a frozen one; also after a failure."""
    stem = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    network = Picky(stem, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5)).train(training)
    stem.train(not training)
    stem[1].train(training)
    modes = [module.training for module in network.modules()]
    if side == 8:
        autotailor.compile(network, resolution=side)
    else:
        with pytest.raises(GraphError, match="cannot be exported"):
            autotailor.compile(network, resolution=side)
    assert [module.training for module in network.modules()] == modes


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.tuples(*[st.integers(1, 12)] * 2), st.tuples(*[st.integers(1, 9) | st.none()] * 2))
def test_products_with_matrices_are_adaptive_pooling(sizes: tuple[int, int], wanted: tuple[int | None, ...]) -> None:
    x = torch.randn(2, 3, *sizes, dtype=torch.float64)
    pool = nn.AdaptiveAvgPool2d(wanted)
    expected = pool(x)
    with AdaptivePools():
        found = pool(x)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("side", [16, 32, 48])
def test_a_head_for_maps_of_three_pixels_takes_other_maps(side: int) -> None:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 16, 3, 8, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 8, 1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(72, 5),
    ).eval()  # fmt: skip
    net = autotailor.compile(network, resolution=side)
    assert not net.static_parts
    checks.check_every_shape(net, 20)
    x = torch.randn(2, 3, side, side)
    with torch.no_grad():
        torch.testing.assert_close(net.build(net.largest())(x), network(x), rtol=1e-4, atol=1e-4)
        assert net.build(net.smallest())(x).shape == (2, 5)


@pytest.mark.sweep
def test_alexnet_of_torchvision_takes_small_images() -> None:
    network = torchvision.models.alexnet(num_classes=5).eval()
    net = autotailor.compile(network, resolution=64)
    x = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(net.build(net.largest())(x), network(x), rtol=1e-3, atol=1e-5)
    assert {"width", "kernel_size"} <= {variable.kind for variable in net.space}


@pytest.mark.parametrize("size", [(6, 64), (2, 24, 40), (3, 16, 48)])
def test_a_network_of_pytorch_states_what_it_takes(size: tuple[int, ...]) -> None:
    """Windows of a sensor, spectrograms of two channels, and pictures that are no squares."""
    layer, norm, pool = (
        (nn.Conv1d, nn.BatchNorm1d, nn.AdaptiveAvgPool1d)
        if len(size) == 2
        else (nn.Conv2d, nn.BatchNorm2d, nn.AdaptiveAvgPool2d)
    )
    stem = layer(size[0], 16, 3, padding=1), norm(16), nn.ReLU(), layer(16, 16, 3, padding=1), nn.ReLU()
    network = nn.Sequential(*stem, pool(1), nn.Flatten(), nn.Linear(16, 5)).eval()
    network.input_size = size  # type: ignore[assignment]
    net, signals = autotailor.compile(network), torch.randn(2, *size, generator=torch.Generator().manual_seed(0))
    assert net.input_shape[1] == size[0]
    with torch.no_grad():
        found = net.build(net.largest()).eval()(signals.reshape(2, *net.input_shape[1:]))
        torch.testing.assert_close(found, network(signals), rtol=1e-4, atol=1e-5)
