"""SuperNets: every form of a SubNet computes the same, and what is deduced is what onnxruntime finds."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import autotailor
import networks
from autotailor.ir.execution.onnx_writer import to_onnx
from autotailor.ir.supernet import UNFUSED

TOLERANCE = 1e-4


def relative(actual: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


def some_subnets(net: autotailor.SuperNet, count: int = 8) -> list[autotailor.SubNet]:
    rng = random.Random(1)
    return [net.largest(), net.smallest(), *(net.sample(rng) for _ in range(count))]


def run_all_tensors(model: onnx.ModelProto, x: np.ndarray) -> dict[str, np.ndarray]:
    """Every activation of a model, by onnxruntime without optimisation."""
    names = [name for node in model.graph.node for name in node.output]
    del model.graph.output[:]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return dict(zip(names, session.run(names, {"input": x}), strict=True))


def test_largest_subnet_is_the_original_network(any_net: autotailor.SuperNet) -> None:
    original = networks.make(any_net.name)
    x = torch.randn(any_net.input_shape)
    with torch.no_grad():
        assert relative(any_net.build(any_net.largest())(x).numpy(), original(x).numpy()) < TOLERANCE


def test_all_forms_of_a_subnet_agree(any_net: autotailor.SuperNet) -> None:
    module = any_net.module().eval()
    for subnet in some_subnets(any_net):
        shapes = any_net.shapes(subnet)
        x = torch.randn(shapes[any_net.graph.input])
        with torch.no_grad():
            elastic = module.activate(subnet)(x).numpy()
            built = any_net.build(subnet)(x).numpy()
        tensors = run_all_tensors(to_onnx(any_net.slice(subnet)), x.numpy())
        assert relative(elastic, built) < TOLERANCE
        assert relative(tensors["output"], built) < TOLERANCE
        for name, tensor in tensors.items():
            if name != "output":
                assert shapes[name] == tensor.shape, name


def test_sorting_channels_leaves_the_largest_as_it_was(any_net: autotailor.SuperNet) -> None:
    sorted_net = any_net.sort_channels()
    x = torch.randn(any_net.input_shape)
    with torch.no_grad():
        before, after = (n.build(n.largest())(x).numpy() for n in (any_net, sorted_net))
    assert relative(after, before) < TOLERANCE
    assert any(order != sorted(order) for order in sorted_net.sorting.values())


def test_saving_and_loading_keep_everything(any_net: autotailor.SuperNet, tmp_path: Path) -> None:
    any_net.sort_channels().save(tmp_path / "net.pt")
    loaded = autotailor.load(tmp_path / "net.pt")
    assert loaded.space == any_net.space
    assert loaded.sorting == any_net.sort_channels().sorting
    x = torch.randn(any_net.input_shape)
    with torch.no_grad():
        assert relative(loaded.build(loaded.largest())(x).numpy(), any_net.build(any_net.largest())(x).numpy()) < 1e-4


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "net.pt").write_bytes(b"no network")
    with pytest.raises(autotailor.AutoTailorError, match=r"net\.pt is no SuperNet .* no file of PyTorch.*supernet\.pt"):
        autotailor.load(tmp_path / "net.pt")
    with pytest.raises(autotailor.AutoTailorError, match=r"none\.pt is no SuperNet .*No such file"):
        autotailor.load(tmp_path / "none.pt")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (torch.zeros(3), "holds something else"),
        ({"conv.weight": torch.zeros(3)}, "holds something else"),
        ({"schema_version": 3}, "schema version 3, this autotailor reads 2"),
        ({"schema_version": 1}, "not what autotailor writes"),
        (
            {"schema_version": 1, "graph": None, "weights": {}, "space": None, "sorting": {}},
            "not what autotailor writes",
        ),
        ({"schema_version": 1, "graph": {}, "weights": 5, "space": None, "sorting": {}}, "not what autotailor writes"),
    ],
)
def test_a_file_of_pytorch_that_is_no_supernet_is_named(content: object, reason: str, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "net.pt")
    with pytest.raises(autotailor.AutoTailorError, match=rf"net\.pt .*{reason}"):
        autotailor.load(tmp_path / "net.pt")


@pytest.mark.parametrize(
    "write", [lambda net, path: net.export_onnx(net.smallest(), path), lambda net, path: net.save(path)]
)
def test_a_file_in_a_missing_folder_is_refused_by_name(
    write: Callable[[autotailor.SuperNet, Path], None], resnet_net: autotailor.SuperNet, tmp_path: Path
) -> None:
    with pytest.raises(autotailor.AutoTailorError, match=r"small\.file: there is no folder .*nowhere; make it"):
        write(resnet_net, tmp_path / "nowhere" / "small.file")
    assert not any(tmp_path.iterdir())


FORMS = (
    lambda net, subnet: net.build(subnet),
    lambda net, subnet: net.export_onnx(subnet, "never.onnx"),
    lambda net, subnet: net.shapes(subnet),
    lambda net, subnet: net.operators(subnet),
    lambda net, subnet: net.sequence(subnet, UNFUSED),
)


@pytest.mark.parametrize("form", FORMS)
def test_no_form_is_made_of_what_is_no_subnet_of_this_space(
    form: Callable[[autotailor.SuperNet, object], object],
    resnet_net: autotailor.SuperNet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    other = autotailor.compile(networks.make("resnet"), {"resolution": [16, 32]}, resolution=32)
    with pytest.raises(autotailor.AutoTailorError, match="belongs to another space; take one of this network"):
        form(resnet_net, other.smallest())
    for wrong in ({"resolution": 24}, "largest", resnet_net.largest().to_array()):
        with pytest.raises(autotailor.AutoTailorError, match=r"expected a SubNet, not \w+; largest\(\)"):
            form(resnet_net, wrong)
    assert not any(tmp_path.iterdir())
