"""BatchNorm of two processes gives the numbers of one process that has the whole batch."""

import pytest
import torch
from torch import nn

import autotailor
import networks
import team_work
import together
from autotailor.compute.placement import CPU
from autotailor.finetuning import PretrainConfig, TrainingError
from autotailor.finetuning.training.processes.batch_norm import Synchronised, widest
from autotailor.finetuning.training.processes.group import Messages, join
from autotailor.ir.execution.modules.graph import GraphModule

ALONE = PretrainConfig(epochs=1)


@pytest.mark.parametrize("kind", team_work.LAYERS)
def test_two_halves_are_normalised_as_one_batch(kind: str) -> None:
    result, gradient, state = team_work.normalised(kind, 1)
    parts = together.results(team_work.normalised, kind, 2)
    torch.testing.assert_close(torch.cat([part[0] for part in parts]), result, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(torch.cat([part[1] for part in parts]), gradient, rtol=1e-4, atol=1e-5)
    for name, value in state.items():
        own = [part[2][name] for part in parts]
        found = own[0] if "running" in name or "num" in name else own[0] + own[1]
        torch.testing.assert_close(found, value, rtol=1e-5, atol=1e-4)


def test_bfloat16_stays_bfloat16() -> None:
    result, gradient, _ = team_work.normalised("of images", 1, torch.bfloat16)
    parts = together.results(team_work.normalised, "of images", 2, torch.bfloat16)
    assert parts[0][0].dtype == parts[0][1].dtype == torch.bfloat16
    torch.testing.assert_close(torch.cat([part[0] for part in parts]), result, rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(torch.cat([part[1] for part in parts]), gradient, rtol=5e-2, atol=5e-2)


def test_evaluation_uses_the_stored_statistics() -> None:
    layer, x = nn.BatchNorm2d(3).eval(), torch.randn(2, 3, 4, 4)
    expected = layer(x)
    with Synchronised(Messages(join(ALONE), 0, CPU)):
        assert torch.equal(layer(x), expected)


def test_the_widest_layer_sets_the_length_of_messages(resnet_net: autotailor.SuperNet) -> None:
    assert widest(nn.Sequential(nn.BatchNorm2d(4), nn.Linear(99, 99), nn.BatchNorm1d(7))) == 7
    assert widest(nn.Linear(3, 3)) == 0
    expected = max(part.num_features for part in networks.make("resnet").modules() if isinstance(part, nn.BatchNorm2d))
    assert widest(GraphModule(resnet_net.graph)) == widest(resnet_net.module()) == expected


def test_a_layer_wider_than_the_messages_is_refused() -> None:
    with (
        Synchronised(Messages(join(ALONE), 6, CPU)),
        pytest.raises(TrainingError, match="sync_batch_norm to false"),
    ):
        nn.BatchNorm2d(4)(torch.randn(2, 4, 3, 3))
