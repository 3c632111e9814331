"""Checkpoints as training scripts write them, for networks in PyTorch and in ONNX."""

import argparse
import io
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import autotailor
import networks
from autotailor.compiler.sources.network import create_network
from autotailor.compiler.sources.source import load_weights
from autotailor.ir.errors import GraphError

IMAGE = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
State = dict[str, torch.Tensor]


def trained() -> State:
    return networks.make("resnet").state_dict()


def before(prefix: str, state: State) -> State:
    return {f"{prefix}{name}": tensor for name, tensor in state.items()}


def zeros() -> State:
    return {name: torch.zeros_like(tensor) for name, tensor in trained().items()}


WRAPPED: dict[str, Callable[[], Any]] = {
    "plain": trained,
    "state_dict": lambda: {"state_dict": trained(), "epoch": 3},
    "model": lambda: {"model": trained(), "optimizer": {"state": {}, "param_groups": [{"lr": 0.1}]}},
    "model_state": lambda: {"model_state": trained(), "accuracy": np.float64(93.1)},
    "timm": lambda: {"arch": "x", "state_dict": zeros(), "state_dict_ema": trained(), "args": argparse.Namespace(lr=1)},
    "torchvision": lambda: {
        "model": before("module.", zeros()),
        "model_ema": {**before("module.", trained()), "n_averaged": torch.tensor(7)},
    },
    "averaged inside": lambda: {"ema": {"module": trained(), "updates": 9}, "model": zeros()},
    "an average's counter": lambda: {"model": trained(), "ema": {"updates": torch.tensor(9), "decay": 0.999}},
    "an average beside its counter": lambda: {
        "ema": {"num_updates": torch.tensor(9), "shadow": trained()},
        "model": zeros(),
    },
    "DistributedDataParallel": lambda: before("module.", trained()),
    "torch.compile": lambda: before("_orig_mod.", trained()),
    "both": lambda: {"state_dict": before("module._orig_mod.", trained())},
    "Lightning": lambda: {"state_dict": {**before("model.", trained()), "loss.weight": torch.ones(3)}, "loops": {}},
    "Lightning with an average": lambda: {
        "state_dict": {**before("model.", zeros()), **before("model_ema.", trained())}
    },
    "Lightning with a teacher": lambda: {"state_dict": {**before("model.", trained()), **before("head.", zeros())}},
    "the same twice": lambda: {**before("student.", trained()), **before("teacher.", trained())},
    "another prefix": lambda: {"x": before("student.backbone.", trained())},
    "half": lambda: {name: t.half() if t.is_floating_point() else t for name, t in trained().items()},
    "before BatchNorm counted": lambda: {n: t for n, t in trained().items() if "num_batches_tracked" not in n},
}


@pytest.mark.parametrize("name", WRAPPED)
def test_checkpoints_load_whatever_wraps_them(name: str, tmp_path: Path) -> None:
    torch.save(WRAPPED[name](), tmp_path / "w.pt")
    network = networks.TinyResNet()
    load_weights(network, tmp_path / "w.pt")
    with torch.no_grad():
        tolerance = 2e-2 if name == "half" else 1e-6
        expected = networks.make("resnet")(IMAGE)
        torch.testing.assert_close(network.eval()(IMAGE), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("one", ["model.", "student.", "ema_a."])
def test_a_checkpoint_of_two_networks_that_fit_is_refused_unless_a_name_says_which_is_wanted(
    one: str, tmp_path: Path
) -> None:
    other = {"model.": "module.", "student.": "teacher.", "ema_a.": "b_ema."}[one]
    torch.save({"state_dict": {**before(one, trained()), **before(other, zeros())}}, tmp_path / "w.pt")
    with pytest.raises(GraphError, match=r"several networks that fit .*differ; save the state dict .* alone") as error:
        load_weights(networks.TinyResNet(), tmp_path / "w.pt")
    assert one in str(error.value)
    assert other in str(error.value)


def test_of_two_networks_with_equal_names_the_one_with_fitting_shapes_is_loaded(tmp_path: Path) -> None:
    wide = {name: torch.zeros((*tensor.shape, 2)) for name, tensor in trained().items()}
    torch.save({**before("a.", wide), **before("student.", trained())}, tmp_path / "w.pt")
    network = networks.TinyResNet()
    load_weights(network, tmp_path / "w.pt")
    assert torch.equal(network.state_dict()["stem.0.weight"], trained()["stem.0.weight"])


@pytest.mark.parametrize("prefix", ["", "module."])
def test_safetensors_load(prefix: str, tmp_path: Path) -> None:
    save_file(before(prefix, trained()), tmp_path / "w.safetensors")
    net = autotailor.compile("networks:TinyResNet", {}, resolution=32, weights=tmp_path / "w.safetensors")
    with torch.no_grad():
        found, expected = net.build(net.largest())(IMAGE), networks.make("resnet")(IMAGE)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_a_module_is_not_changed_by_the_weights_that_it_is_compiled_with(tmp_path: Path) -> None:
    torch.save(trained(), tmp_path / "w.pt")
    network = networks.TinyResNet().eval()
    untouched = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    net = autotailor.compile(network, {}, resolution=32, weights=tmp_path / "w.pt")
    with torch.no_grad():
        found, expected = net.build(net.largest())(IMAGE), networks.make("resnet")(IMAGE)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, untouched[name])


def exported(network: nn.Module, dynamo: bool, **options: Any) -> onnx.ModelProto:
    buffer = io.BytesIO()
    if dynamo:
        program = torch.onnx.export(network.eval(), (IMAGE,), dynamo=True, verbose=False, **options)
        return program.model_proto
    torch.onnx.export(network.eval(), (IMAGE,), buffer, dynamo=False, opset_version=17, **options)
    return onnx.load_from_string(buffer.getvalue())


@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.parametrize("wrapped", ["plain", "torchvision"])
def test_a_checkpoint_fills_an_onnx_file_whose_names_it_has(dynamo: bool, wrapped: str, tmp_path: Path) -> None:
    options = {"optimize": False} if dynamo else {"do_constant_folding": False}
    if not dynamo:
        options["training"] = torch.onnx.TrainingMode.PRESERVE  # otherwise BatchNorm is folded
    torch.save(WRAPPED[wrapped](), tmp_path / "w.pt")
    network = networks.make("resnet")
    with torch.no_grad():
        for tensor in network.state_dict().values():
            tensor.add_(torch.rand(tensor.shape).to(tensor.dtype))  # other weights, no two of them alike
    model = exported(network, dynamo, **options)
    onnx.save(model, tmp_path / "m.onnx")
    for source in (model, tmp_path / "m.onnx"):
        net = autotailor.compile(source, {}, weights=tmp_path / "w.pt")
        with torch.no_grad():
            found, expected = net.build(net.largest())(IMAGE), networks.make("resnet")(IMAGE)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dynamo", [False, True])
def test_a_checkpoint_for_an_onnx_file_with_folded_batch_norm_is_refused(dynamo: bool, tmp_path: Path) -> None:
    torch.save(trained(), tmp_path / "w.pt")
    model = exported(networks.TinyResNet(), dynamo)
    with pytest.raises(GraphError, match=r"does not fit the network: .*the exporter folded.*model\.source"):
        autotailor.compile(model, {}, weights=tmp_path / "w.pt")


class Evil:
    """Runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


def test_objects_that_could_run_code_are_not_read(tmp_path: Path) -> None:
    torch.save({"model": trained(), "args": Evil(tmp_path / "ran")}, tmp_path / "w.pt")
    with pytest.raises(GraphError, match=r"besides tensors, and reading them would run code.*model\.state_dict"):
        load_weights(networks.TinyResNet(), tmp_path / "w.pt")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["w.pt", "w.safetensors", "w.ckpt"])
@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 not a zip", b"\x80\x02."])
def test_damaged_files_are_refused(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(GraphError, match=f"weights file {tmp_path / name}"):
        load_weights(networks.TinyResNet(), tmp_path / name)


@pytest.mark.parametrize("content", [{"epoch": 3}, {"n": torch.tensor(3)}, [1, 2], torch.zeros(3), {}])
def test_files_without_a_state_dict_are_refused(content: Any, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "w.pt")
    with pytest.raises(GraphError, match=r"holds no state dict.*torch\.save"):
        load_weights(networks.TinyResNet(), tmp_path / "w.pt")


def test_a_file_that_unpacks_to_gigabytes_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(3)}, tmp_path / "small.pt")
    with zipfile.ZipFile(tmp_path / "small.pt") as small, zipfile.ZipFile(tmp_path / "bomb.pt", "w", 8) as bomb:
        for name in small.namelist():
            bomb.writestr(name, small.read(name))
        with bomb.open("small/data/9", "w") as zeros:
            for _ in range(200):
                zeros.write(bytes(2**20))
    for read in (lambda path: autotailor.compile("timm:resnet18", weights=path), autotailor.load):
        with pytest.raises(GraphError, match=r"bomb.pt has 2\d\d,\d{3} bytes and unpacks to 209,7\d\d,\d{3}"):
            read(tmp_path / "bomb.pt")


@pytest.mark.parametrize(("depth", "words"), [(60, "holds no state dict"), (3000, "nested too deeply")])
def test_a_nest_of_dictionaries_is_refused_in_a_sentence(depth: int, words: str, tmp_path: Path) -> None:
    nest: dict[str, Any] = {}
    inner = nest
    for _ in range(depth):
        inner["model"] = {}
        inner = inner["model"]
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(20_000)  # torch.save itself is recursive
        torch.save(nest, tmp_path / "nest.pt")
    finally:
        sys.setrecursionlimit(limit)
    with pytest.raises(GraphError, match=words):
        load_weights(networks.TinyResNet(), tmp_path / "nest.pt")


def test_what_does_not_fit_is_listed(tmp_path: Path) -> None:
    state = trained()
    del state["head.2.bias"]
    state["head.3.bias"] = torch.zeros(5)
    state["stem.0.weight"] = torch.zeros(8, 3, 3, 3)
    torch.save(state, tmp_path / "w.pt")
    wanted = (
        r"1 missing \(head\.2\.bias\); 1 unexpected \(head\.3\.bias\); "
        r"1 of another shape \(stem\.0\.weight is \[8, 3, 3, 3\], not \[16, 3, 3, 3\]\)"
    )
    with pytest.raises(GraphError, match=wanted):
        load_weights(networks.TinyResNet(), tmp_path / "w.pt")


class TestClasses:
    def test_a_checkpoint_with_another_head_says_which_num_classes_to_set(self, tmp_path: Path) -> None:
        torch.save(create_network("timm:resnet18", pretrained=False, num_classes=26).state_dict(), tmp_path / "w.pt")
        with pytest.raises(
            GraphError, match=r"a network with 26 classes, this one has 1000: set model\.num_classes to 26"
        ):
            autotailor.compile("timm:resnet18", {}, weights=tmp_path / "w.pt")
        net = autotailor.compile("timm:resnet18", {}, weights=tmp_path / "w.pt", num_classes=26)
        assert net.num_classes == 26

    def test_timms_own_weights_do_not_get_an_untrained_head(self) -> None:
        with pytest.raises(GraphError, match=r"weights have 1000 classes, model\.num_classes is 26.*pretrain"):
            autotailor.compile("timm:resnet18.a1_in1k", {}, num_classes=26)

    @pytest.mark.parametrize(
        "source", ["timm:resnet18", "timm.models:resnet18", "torchvision.models:resnet18",
                   "autotailor.zoo.resnet_digits:resnet_digits"],
    )  # fmt: skip
    def test_sources_that_can_are_made_with_them(self, source: str) -> None:
        network = create_network(source, pretrained=False, num_classes=7)
        assert network.eval()(IMAGE).shape == (1, 7)

    def test_other_sources_must_have_as_many(self) -> None:
        for source in ("networks:TinyResNet", networks.make("resnet"), exported(networks.make("resnet"), False)):
            assert autotailor.compile(source, {}, resolution=32, num_classes=5).num_classes == 5
            with pytest.raises(GraphError, match=r"num_classes is 10; set model\.num_classes to 5"):
                autotailor.compile(source, {}, resolution=32, num_classes=10)


def test_an_onnx_file_is_not_trained_from_scratch() -> None:
    with pytest.raises(GraphError, match=r"model\.weights to null"):
        create_network("models/mine.onnx")
