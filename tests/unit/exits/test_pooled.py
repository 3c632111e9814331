"""Exported SubNets with exits as a pool: what is written, and what the server answers from it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from autotailor.data.splits import TensorEvaluationSet
from autotailor.exits.config import ExitsConfig
from autotailor.exits.costs import WithExits, by_table
from autotailor.exits.files import write_files
from autotailor.exits.making import add_heads, make
from autotailor.exits.pooled import pool_exits
from autotailor.finetuning.polishing.config import PolishConfig
from autotailor.ir.supernet import SuperNet
from autotailor.pool.config import PoolConfig
from autotailor.pool.making import origin_of
from autotailor.profiling import LUT, DeviceConfig, LUTRow, exporting_runtime, fusion_rules
from autotailor.serving import Flag, Request, Service
from autotailor.serving.files import whole_pool
from exit_pools import ExitPool, exit_pool
from lut_tables import DEVICE
from served import serve_binary
from tiny_data import splits


def test_what_the_rule_writes_is_a_pool_with_the_thresholds_that_were_chosen(net: SuperNet, tmp_path: Path) -> None:
    random = torch.Generator().manual_seed(0)
    held = TensorEvaluationSet(torch.randn(40, 3, 32, 32, generator=random), np.arange(40) % 5, np.arange(40) // 2)
    data = replace(splits(), validation=held, test=held)
    subnet, device = net.largest(), DeviceConfig(name="host", transport="local", runtime="ncnn")
    config = ExitsConfig(after=("stage1", "block4"), images=0)
    headed = {"largest": add_heads(net, subnet, net.slice(subnet), data, config, PolishConfig(), tmp_path / "work")}
    features = net.operators(fusion=fusion_rules(device))
    lut = LUT(tuple(LUTRow(each, DEVICE.id, 0.05, 0.001, 9, workspace_mb=0.1) for each in features), DEVICE)
    images = {"largest": held.images[:3].numpy()}

    def price(networks: Any) -> Any:
        return by_table(net, dict.fromkeys(networks, subnet), networks, lut, fusion_rules(device))

    def write(name: str, network: WithExits, folder: Path) -> dict[str, float]:
        return write_files(network, net.names, folder, images[name], exporting_runtime(), 1e-4)

    said = make(headed, data, config, price, write, tmp_path / "exits", "ms")
    origin = origin_of("mine", device, PoolConfig(), task=held.task)
    written = pool_exits(tmp_path / "exits", net, {"largest": subnet}, headed, said, images, lut, device, origin)
    (member,) = whole_pool(tmp_path / "exits" / "pool").index.members
    names = list(said["networks"]["largest"]["exits"])
    assert (member.name, [each.name for each in member.exits], member.output) == ("largest", names, f"out{len(names)}")
    assert member.latency_ms == pytest.approx(said["networks"]["largest"]["worst"])
    budgets = {key.replace(" ", ""): row["with"]["thresholds"] for key, row in said["budgets"].items() if row["with"]}
    chosen = {name: dict(zip(names, row, strict=True)) for name, row in member.thresholds}
    assert chosen == {name: row for name, row in budgets.items() if row}
    assert chosen
    assert written["members"][0]["thresholds"] == chosen
    assert written["members"][0]["weights"] == "own"


@pytest.fixture(scope="module")
def pool(net: Any, headed: Any, tmp_path_factory: pytest.TempPathFactory) -> ExitPool:
    """A pool of one member with two exits."""
    serve_binary()
    return exit_pool(net, headed, tmp_path_factory.mktemp("exits"))


@pytest.fixture
def service(pool: ExitPool) -> Iterator[Service]:
    with Service.of(pool.folder, 1000.0, thresholds=None) as made:
        yield made


def test_each_exit_answers_as_pytorch(pool: ExitPool, service: Service) -> None:
    for number, name in enumerate(("first", "second", "none")):
        service.set({"thresholds": name})
        for row, image in enumerate(pool.images):
            reply = service.infer(Request(image))
            assert (reply.exit, Flag.EARLY in reply.flags) == (number, number < 2)
            np.testing.assert_allclose(reply.outputs, pool.answers[number][row], rtol=1e-4, atol=1e-4)
