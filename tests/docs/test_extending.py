"""The examples of docs/extending are run as they stand on their pages, and what they register is used."""

import math
import os
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
import yaml
from omegaconf import OmegaConf
from torch import nn

import autotailor
import checkouts
import networks
from autotailor import data, search
from autotailor.accuracy import evaluation
from autotailor.data import registry
from autotailor.finetuning import FinetuneConfig, sampling
from autotailor.finetuning.loss import make_loss
from autotailor.finetuning.sampling import strategy
from autotailor.finetuning.training import optimizers
from autotailor.ir.alternatives import alternative
from autotailor.ir.blocks import block
from autotailor.ir.execution.modules.moments import MomentCollector
from autotailor.ir.operators import rule
from autotailor.ir.space.subnet import SubNet
from autotailor.measurement import summary
from autotailor.measurement.config import Effort
from autotailor.prediction import Measured, Outcome
from autotailor.profiling import DeviceConfig, energy, fusion_rules
from autotailor.profiling.runtimes import RUNTIMES, open_runtime
from autotailor.profiling.transports import TRANSPORTS, open_transport
from autotailor.reporting import ReportInputs
from autotailor.reporting.derived_columns import DERIVATIONS
from autotailor.reporting.html import render
from autotailor.reporting.inputs import COLUMNS, Tables
from autotailor.search.metrics import METRICS, Sources, all_metrics
from autotailor.task import find
from autotailor.task import registry as tasks

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "extending"
REGISTRIES: tuple[Any, ...] = (
    registry._FACTORIES,
    tasks._KINDS,
    strategy.STRATEGIES,
    optimizers._OPTIMIZERS,
    rule.rules._rules,
    alternative._alternatives,
    block._templates,
    RUNTIMES,
    TRANSPORTS,
    DERIVATIONS,
    METRICS,
)


@pytest.fixture(autouse=True)
def _registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What an example registers is forgotten after its test."""
    alternative.alternatives(), block.templates(), sampling.names(), data.names(), tasks.names()
    before = [held.copy() for held in REGISTRIES]
    monkeypatch.setattr(energy, "SENSORS", energy.SENSORS)
    yield
    for held, content in zip(REGISTRIES, before, strict=True):
        held.clear()
        held.extend(content) if isinstance(held, list) else held.update(content)


def example(page: str, language: str = "python") -> str:
    """The one code block of a page in a language."""
    text = (PAGES / page).read_text(encoding="utf-8")
    (found,) = re.findall(
        rf"<!-- run by: tests/docs/test_extending.py::\w+ -->\n```{language}\n(.*?)```", text, re.DOTALL
    )
    return found


def run(page: str) -> dict[str, Any]:
    """The names that the example of a page defines."""
    names: dict[str, Any] = {"__name__": page.removesuffix(".md")}
    exec(compile(example(page), page, "exec", dont_inherit=True), names)
    return names


class Triple(nn.Module):
    """A stem, and a sum around three convolutions of 3x3."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        convs = [nn.Conv2d(16, 16, 3, padding=1) for _ in range(3)]
        self.main = nn.Sequential(convs[0], nn.ReLU(), convs[1], nn.ReLU(), convs[2])
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.stem(x))
        return self.head(torch.relu(x + self.main(x)))


def outputs(path: Path, images: torch.Tensor) -> Any:
    """What onnxruntime computes from a file."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: images.numpy()})[0]


def test_an_operator_rule_makes_an_operator_elastic_that_was_static(tmp_path: Path) -> None:
    (static,) = autotailor.compile(networks.Waves(), resolution=16).static_parts
    assert (static.kind, static.reason) == ("Atan", "no rule for Atan")
    run("operator.md")
    net = autotailor.compile(networks.Waves(), resolution=16)
    assert net.static_parts == ()
    assert [variable.name for variable in net.space.variables] == ["resolution", "stage1.width"]
    small = net.smallest()
    net.export_onnx(small, tmp_path / "small.onnx")
    images = torch.randn(1, 3, 8, 8)
    with torch.no_grad():
        built = net.build(small)(images).numpy()
    np.testing.assert_allclose(built, outputs(tmp_path / "small.onnx", images), atol=1e-5)


def test_a_template_names_its_blocks_and_their_variables() -> None:
    assert {found.kind for found in autotailor.compile(Triple(), resolution=16).blocks} == {"Residual"}
    run("template.md")
    net = autotailor.compile(Triple(), {"blocks": {"TripleResidual": {"expand_ratio": [0.5, 1.0]}}}, resolution=16)
    assert [found.kind for found in net.blocks] == ["TripleResidual"]
    assert [variable.name for variable in net.space.variables] == ["block1.expand_ratio"]


def test_an_alternative_is_a_choice_of_its_block() -> None:
    run("alternative.md")
    space = {"blocks": {}, "alternatives": {"pixel": True}}
    net = autotailor.compile(Triple(), space, resolution=16)
    assert [(v.name, v.choices) for v in net.space] == [("block1.operator", ("original", "pixel"))]
    collector, images = MomentCollector(net.elastic), torch.rand(32, *net.input_shape[1:])
    with torch.no_grad():
        wanted = collector(images)
    solved = net.with_weights(collector.alternatives())
    subnet = SubNet.from_assignment(net.space, {"block1.operator": "pixel"})
    far, near = ((each.build(subnet)(images) - wanted).square().mean() for each in (net, solved))
    assert near < far
    macs = net.macs()
    assert macs.predict(subnet.to_array()) < macs.predict(net.largest().to_array())


def test_a_fusion_rule_of_the_configuration_holds_for_its_device() -> None:
    section = yaml.safe_load(example("fusion.md", "yaml"))["fusion"]
    rules = open_runtime(DeviceConfig("mine", runtime="onnxruntime", fusion=section)).fusion
    assert ("Conv", "Elu") in rules.fuses
    assert ("Conv", "Tanh") not in rules.fuses


def test_a_fusion_rule_makes_one_operator_of_two() -> None:
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    net = autotailor.compile(network, resolution=16)
    rules = run("fusion.md")["with_elu"]
    (conv,) = (found for found in net.operators(net.largest(), rules) if found.kind == "Conv")
    assert [follower.kind for follower in conv.followers] == ["Elu"]


def test_a_runtime_is_opened_by_its_name_and_computes(tmp_path: Path) -> None:
    run("runtime.md")
    runtime = open_runtime(DeviceConfig("mine", runtime="onnxruntime-plain"))
    runtime.check()
    assert runtime.facts()["options"] == {"graph_optimization_level": "none"}
    net = autotailor.compile(Triple(), resolution=16)
    net.export_onnx(net.largest(), tmp_path / "net.onnx")
    runtime.convert(tmp_path / "net.onnx", tmp_path / "converted")
    images = torch.randn(2, 3, 16, 16)
    found = runtime.run(tmp_path / "converted", images.numpy())
    np.testing.assert_allclose(found[:1], outputs(tmp_path / "net.onnx", images[:1]), atol=1e-5)


def test_a_transport_is_opened_by_its_name_and_runs_commands() -> None:
    run("transport.md")
    lines: list[str] = []
    with open_transport(DeviceConfig("mine", transport="nice")) as transport:
        assert transport.run(["nice"], lines.append) == 0
    assert int(lines[0]) == min(19, os.nice(0) + 5)


def test_a_sensor_is_found_on_a_board_that_has_it(tmp_path: Path) -> None:
    run("sensor.md")
    folder = tmp_path / "class" / "hwmon" / "hwmon2"
    folder.mkdir(parents=True)
    (folder / "name").write_text("board\n")
    (folder / "power1_input").write_text("2500000\n")
    with open_transport(DeviceConfig("host")) as transport:
        sensor = energy.find_sensor(transport, PurePosixPath(tmp_path))
    assert sensor is not None
    assert sensor.name == "power monitor (board)"
    readings = [{sensor.paths[0]: "2500000"}, {sensor.paths[0]: "2500000"}]
    assert list(sensor.joules([0.0, 2.0], readings)) == [0.0, 5.0]


def test_a_dataset_is_loaded_by_its_name() -> None:
    run("dataset.md")
    text = (PAGES / "dataset.md").read_text(encoding="utf-8")
    (file,) = re.findall(r'```yaml title="conf/data/colours.yaml"\n(.*?)```', text, re.DOTALL)
    written = OmegaConf.create({"model": {"resolution": 24}, "seed": 0, "data": yaml.safe_load(file)})
    splits = data.load(OmegaConf.to_container(written, resolve=True)["data"])
    images, labels = next(splits.train.batches(epoch=0, batch_size=8))
    assert images.shape == (8, 3, 24, 24)
    assert labels.tolist() == [0, 1, 2, 0, 1, 2, 0, 1]
    assert len(splits.validation) == len(splits.test) == 60
    assert data.classes({"name": "colours"}) == ("red", "green", "blue")


def test_a_task_judges_and_is_found_by_its_name() -> None:
    run("task.md")
    found = find("grades")
    outputs, grades = torch.tensor([[9.0, 0, 0], [0, 9.0, 0], [0, 0, 9.0]]), torch.tensor([0, 0, 0])
    assert found.judge(outputs, grades).values.tolist() == [1.0, 0.5, 0.0]
    assert found.chance(np.array([0, 0, 1, 1])) == pytest.approx(0.5)
    outcome = evaluation.outcome([found.judge(outputs, grades)])
    assert Outcome.unpacked(*outcome.packed(), 3).values.tolist() == [1.0, 0.5, 0.0]


def test_a_strategy_draws_by_its_name() -> None:
    run("sampling.md")
    net = autotailor.compile(Triple(), resolution=16)
    strategy_of_mine = sampling.create("warm", net.space, {}, 3)
    random = np.random.default_rng(0)
    assert strategy_of_mine.draw(0.0, random) == (net.largest(), net.smallest(), net.smallest())
    assert len(strategy_of_mine.draw(0.5, random)) == 3


def test_an_optimizer_is_made_by_its_name() -> None:
    run("optimizer.md")
    made = optimizers.make_optimizer(Triple(), "adagrad", 0.1, 0.02)
    assert isinstance(made, torch.optim.Adagrad)
    assert [group["weight_decay"] for group in made.param_groups] == [0.02, 0.0]


def test_a_loss_takes_the_place_of_distillation(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = types.ModuleType("losses_of_mine")
    vars(mine).update(run("loss.md"))
    monkeypatch.setitem(sys.modules, "losses_of_mine", mine)
    config = FinetuneConfig(epochs=1, loss="losses_of_mine:agreement", label_smoothing=0.0)
    loss = make_loss(config, find("classification"), 3, independent=False)
    logits = torch.zeros(2, 3, requires_grad=True)
    trusted, others = torch.eye(3)[:2], torch.eye(3)[[2, 2]]
    labels = torch.tensor([0, 1])
    assert loss(logits, labels, trusted, config).item() == pytest.approx(math.log(3))
    assert loss(logits, labels, others, config).item() == 0.0


def test_a_derived_number_of_the_report_follows_from_its_table(tmp_path: Path) -> None:
    run("report.md")
    summary = tmp_path / "summary.csv"
    row = dict.fromkeys(COLUMNS["summary"], 0.0) | {"name": "largest", "macs_m": 8.0, "latency_ms_measured": 0.4}
    pd.DataFrame([row]).to_csv(summary, index=False)
    tables = Tables(ReportInputs("m", "d", pareto=summary, summary=summary))
    assert DERIVATIONS["macs_per_ms"].compute(tables, "largest") == pytest.approx(20.0)


def test_a_stage_is_a_rule_with_what_it_reads_and_depends_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkouts, "QUICK", {})
    checkout = checkouts.make(tmp_path)
    path = checkout / "src" / "autotailor" / "stages.py"
    text, entry = path.read_text(encoding="utf-8"), example("stage.md").partition("\n\n")[2]
    path.write_text(f"{text}\n\n{entry}", encoding="utf-8")
    (checkout / "workflow" / "scripts" / "spread.py").write_text("from stage import stage\n", encoding="utf-8")
    command = "snakemake -n results/resnet_digits/host/spread.csv"
    done = checkouts.shell(command, checkout)
    assert "spread: the largest and the smallest latency of an operator on host" in done.stdout + done.stderr
    planned = set(re.findall(r"^(\w+) +1$", done.stdout, re.MULTILINE))
    assert planned == {"pretrain", "compile", "enumerate", "profile", "spread"}


def test_a_metric_is_a_limit_a_column_and_a_part_of_the_report(
    resnet_net: autotailor.SuperNet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = [{"latency": "95%", "carbon": "80%"}]
    with pytest.raises(search.SearchError, match="unknown carbon"):
        search.check_budgets(asked, search.LATENCY)
    run("metric.md")
    search.check_budgets(asked, search.LATENCY)
    assert search.needed_columns(asked) == {"energy_mj"}

    net, device = resnet_net, DeviceConfig(name="host")
    fusion, random = fusion_rules(device), np.random.default_rng(0)
    ids = sorted(operator.id for operator in net.operators(fusion=fusion))
    spent = dict(zip(ids, random.uniform(1.0, 2.0, len(ids)), strict=True))
    sources = Sources(net, fusion, {"energy_mj": spent, "resident_weight_mb": {}, "workspace_mb": {}}.__getitem__)
    latency = net.latency(dict(zip(ids, random.uniform(1.0, 2.0, len(ids)), strict=True)), fusion)
    further = search.further_metrics(net, asked, fusion, sources.columns)
    objectives = search.Objectives(net.macs(), latency)
    config = search.SearchConfig(population=20, generations=5, candidates=2, seed=1)

    def measure(subnets: list[SubNet]) -> dict[str, Measured]:
        return {subnet.id: Measured(50.0, 0.1, 50.0, 0.1) for subnet in subnets}

    front = search.exact_front(objectives).front
    choice = search.choose(objectives, front, asked, measure, config, further=further)
    choice.write(tmp_path / "candidates.csv")
    found = pd.read_csv(tmp_path / "candidates.csv")
    energy = search.METRICS["energy"].of(sources)
    assert energy is not None
    whole = float(energy.predict(net.largest().to_array())[0]) / 9
    assert found["carbon_budget"].to_numpy() == pytest.approx(0.8 * whole)
    assert (found["carbon_predicted"] <= 0.8 * whole * (1 + 1e-9)).all()

    names = {"largest": net.largest(), "budget_01": choice.subnets["budget_01"]}
    models = {name: tmp_path / f"{name}.onnx" for name in (*names, "original")}
    for name, path in models.items():
        net.export_onnx(names.get(name, net.largest()), path)
    monkeypatch.setattr(summary, "accuracy_of_onnx", lambda *_: np.array([True, False, True, True]))
    predictions = summary.Predictions(net.macs(), None, latency, all_metrics(sources))
    weights = pd.DataFrame({"name": list(names), "weights": "inherited", "accuracy_inherited": 75.0})
    test: Any = types.SimpleNamespace(groups=np.arange(4), task="classification", labels=np.zeros(4, dtype=np.int64))
    table = summary.summarise(predictions, names, weights, models, test, device, None, Effort())
    assert table.columns[-1] == "carbon_ug_predicted"
    assert table["carbon_ug_predicted"].to_numpy() == pytest.approx(table["energy_mj_predicted"] / 9)

    table = table.assign(latency_ms_measured=[2.0, 1.0, 2.0], latency_ms_standard_error=0.1, memory_mb_measured=3.0)
    table.to_csv(tmp_path / "summary.csv", index=False)
    front_of = {"subnet": ["a", "b"], "accuracy_predicted": [75.0, 70.0], "latency_ms_predicted": [2.0, 1.0]}
    pd.DataFrame(front_of).to_csv(tmp_path / "pareto.csv", index=False)
    page = render(ReportInputs("m", "d", pareto=tmp_path / "pareto.csv", summary=tmp_path / "summary.csv"))
    assert "carbon (µg)" in page
    assert f">{table['carbon_ug_predicted'][0]:.3f}<" in page


def test_every_kind_of_extension_has_a_page_in_the_index() -> None:
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\((\w+\.md)\)", index)) == {page.name for page in PAGES.glob("*.md")} - {"index.md"}
