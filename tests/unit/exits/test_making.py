import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from autotailor.data.splits import TensorEvaluationSet
from autotailor.exits.config import ExitsConfig
from autotailor.exits.costs import COUNTED, Priced, WithExits, counted
from autotailor.exits.making import add_heads, make
from autotailor.finetuning.polishing.config import PolishConfig
from autotailor.ir.supernet import SuperNet
from tiny_data import splits


def test_all_that_the_report_shows_is_found_in_one_document(net: SuperNet, tmp_path: Path) -> None:
    random = torch.Generator().manual_seed(0)
    held = TensorEvaluationSet(torch.randn(40, 3, 32, 32, generator=random), np.arange(40) % 5, np.arange(40) // 2)
    data = replace(splits(), validation=held, test=held)
    config = ExitsConfig(after=("stage1", "block4"), images=0)
    subnet = net.largest()
    headed = {"largest": add_heads(net, subnet, net.slice(subnet), data, config, PolishConfig(), tmp_path / "work")}

    def price(networks: Mapping[str, WithExits]) -> Priced:
        counts = {name: counted(each) for name, each in networks.items()}
        return Priced(counts, COUNTED, energy={"largest": counted(networks["largest"])})

    def write(name: str, network: WithExits, folder: Path) -> dict[str, float]:
        folder.mkdir(parents=True)
        return {"model.onnx": 0.0}

    found = make(headed, data, config, price, write, tmp_path / "exits", "M")
    assert json.loads(json.dumps(found)) == found
    network = found["networks"]["largest"]
    assert set(network["exits"]) | set(network["dropped"]) == {"stage1", "block4"}
    whole = found["budgets"]["100 %"]
    assert whole["with"]["expected"] <= whole["budget"] * (1 + 1e-9)
    assert whole["with"]["energy"]["expected"] == whole["with"]["expected"]
    assert whole["with"]["energy"]["worst"] == whole["with"]["worst"]
    assert found["costs"] == "counted"
    assert network["guaranteed"] is None  # of 20 pictures nothing is sure
    told = json.loads((tmp_path / "exits" / "largest" / "exits.json").read_text())
    assert told["probabilities"] is False
    with np.load(tmp_path / "exits" / "largest" / "answers.npz") as arrays:
        assert arrays["test_right"].shape == (40, len(network["exits"]) + 1)
    for shown in found["pictures"].values():
        assert 0 < shown["share"] <= 1
        assert all(shown["png"])
