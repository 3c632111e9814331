"""Files and modules as a whole: what compiles computes the same, what does not is refused by name."""

import io
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

import autotailor
import networks
import tiny_data
from autotailor import accuracy, finetuning
from autotailor.compiler import read_graph
from autotailor.ir.errors import AutoTailorError, GraphError, SpaceError
from autotailor.ir.execution.batch_norm import placeholders
from onnx_text import HEAD, KERNEL, model_of
from reference import assert_same, run

CALIBRATION = accuracy.CalibrationConfig(images=32, batch_size=16)


def test_an_onnx_file_compiles_to_the_same_function(tmp_path: Path) -> None:
    net = autotailor.compile(networks.make("mobilenet"), networks.SPACES["mobilenet"], resolution=32)
    net.export_onnx(net.largest(), tmp_path / "model.onnx")
    again = autotailor.compile(tmp_path / "model.onnx", networks.SPACES["mobilenet"])
    x = torch.randn(net.input_shape)
    expected = onnxruntime.InferenceSession(str(tmp_path / "model.onnx")).run(None, {"input": x.numpy()})[0]
    with torch.no_grad():
        np.testing.assert_allclose(again.build(again.largest())(x).numpy(), expected, rtol=1e-4, atol=1e-5)
    assert again.space == net.space
    assert again.name == "model"


def test_every_subnet_of_an_onnx_file_keeps_the_names_of_its_input_and_output(tmp_path: Path) -> None:
    """Also where the last block, which writes the output of the trunk, is removed."""
    torch.onnx.export(
        networks.make("resnet"), (torch.randn(1, 3, 32, 32),), str(tmp_path / "m.onnx"), dynamo=False,
        opset_version=17, input_names=["images"], output_names=["scores"], do_constant_folding=False,
    )  # fmt: skip
    net = autotailor.compile(tmp_path / "m.onnx", networks.SPACES["resnet"])
    for subnet in (net.largest(), net.smallest()):
        net.export_onnx(subnet, tmp_path / "model.onnx")
        session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
        assert [value.name for value in (*session.get_inputs(), *session.get_outputs())] == ["images", "scores"]


class Pooled(networks.TinyResNet):
    """Divides by the number of positions in the place of a mean."""

    def __init__(self, mean: bool) -> None:
        super().__init__()
        self.mean = mean

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for part in list(self.children())[:-1]:
            x = part(x)
        pooled = x.mean((2, 3)) if self.mean else x.sum((2, 3)) / (x.shape[2] * x.shape[3])
        return self.head[-1](pooled)


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("kind", ["module", "file"])
def test_a_count_of_positions_that_is_fixed_for_one_resolution_gives_a_warning(
    mean: bool, kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    network = Pooled(mean).eval()
    torch.onnx.export(network, (torch.randn(1, 3, 32, 32),), str(tmp_path / "m.onnx"), dynamo=False,
                      opset_version=17, input_names=["x"], dynamic_axes={"x": {2: "h", 3: "w"}})  # fmt: skip
    source = network if kind == "module" else tmp_path / "m.onnx"
    net = autotailor.compile(source, {"resolution": [16, 32]}, resolution=32)
    assert "resolution" in net.space.positions
    warned = [r.getMessage() for r in caplog.records if "at resolution 16 its SubNet" in r.getMessage()]
    assert len(warned) == (0 if mean else 1)
    assert all("model.space.resolution; [32] keeps one" in message for message in warned)


def test_a_files_graph_is_read_as_it_is_compiled(tmp_path: Path) -> None:
    net = autotailor.compile(networks.make("resnet"), networks.SPACES["resnet"], resolution=32)
    net.export_onnx(net.largest(), tmp_path / "model.onnx")
    graph = read_graph(tmp_path / "model.onnx")
    assert graph.name == "model"
    assert graph.nodes == autotailor.compile(tmp_path / "model.onnx").graph.nodes


def test_a_dynamic_batch_axis_is_accepted(tmp_path: Path) -> None:
    torch.onnx.export(
        networks.make("resnet"), (torch.randn(2, 3, 32, 32),), str(tmp_path / "m.onnx"), dynamo=False,
        opset_version=17, dynamic_axes={"images": {0: "n"}}, input_names=["images"], do_constant_folding=False,
    )  # fmt: skip
    net = autotailor.compile(tmp_path / "m.onnx")
    assert net.input_shape == (1, 3, 32, 32)
    assert len(net.blocks) == 5


def test_without_a_space_one_is_proposed() -> None:
    net = autotailor.compile(networks.make("resnet"), resolution=32)
    kinds = {v.kind for v in net.space}
    assert kinds == {"resolution", "width", "depth", "expand_ratio"}
    largest, smallest = (net.macs().predict(s.to_array())[0] for s in (net.largest(), net.smallest()))
    assert smallest < largest / 2


def test_factory_and_weights(tmp_path: Path) -> None:
    torch.save(networks.make("resnet").state_dict(), tmp_path / "w.pt")
    net = autotailor.compile("networks:TinyResNet", {}, resolution=32, weights=tmp_path / "w.pt")
    x = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        expected = networks.make("resnet")(x)
        assert torch.allclose(net.build(net.largest())(x), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("missing.onnx", "does not exist"),
        ("timm:resnet50000", "timm has no model"),
        ("nothing_here:make", "cannot be imported"),
        ("networks:missing", "has no attribute"),
        ("networks:relative", "has no attribute"),
        ("networks:conv_bn", "missing"),
        ("resnet50", "expected a path"),
    ],
)
def test_unusable_sources_are_named(source: str, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        autotailor.compile(source)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "import argparse\nargparse.ArgumentParser().parse_args(['--lr'])",
            "leaves cannot be imported: SystemExit: 2, at",
        ),
        ("import sys\ndef make(): sys.exit(0)", "leaves:make failed with SystemExit: 0, at leaves.py:2; it exits"),
        ("import sys\ndef make(): sys.exit()", "leaves:make failed with SystemExit, at leaves.py:2; it exits"),
    ],
)
def test_code_that_exits_is_named_with_the_remedy(
    code: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "leaves.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "leaves", raising=False)
    with pytest.raises(GraphError, match=message) as refused:
        autotailor.compile("leaves:make")
    assert 'under `if __name__ == "__main__":`' in str(refused.value)


def test_a_network_made_for_another_resolution_says_for_which() -> None:
    class Fixed(nn.Conv2d):
        default_cfg = {"input_size": (3, 48, 40)}  # as timm's networks have it

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            assert image.shape[-2:] == (48, 40)
            return super().forward(image)

    with pytest.raises(GraphError, match=r"\[1, 3, 32, 32\].*made for 48x40 pixels"):
        autotailor.compile(Fixed(3, 4, 3), resolution=32)


def test_weights_that_do_not_fit_are_named(tmp_path: Path) -> None:
    torch.save({"x": torch.zeros(1)}, tmp_path / "w.pt")
    with pytest.raises(GraphError, match="does not fit"):
        autotailor.compile("networks:TinyResNet", resolution=32, weights=tmp_path / "w.pt")


def test_corrupt_files_are_refused(tmp_path: Path) -> None:
    good = tmp_path / "good.onnx"
    net = autotailor.compile(networks.make("resnet"), resolution=32)
    net.export_onnx(net.smallest(), good)
    content = good.read_bytes()
    bad = tmp_path / "bad.onnx"
    rng = np.random.default_rng(0)
    for cut in [0, 10, len(content) // 3, len(content) - 7]:
        bad.write_bytes(content[:cut])
        with pytest.raises(GraphError, match=r"bad\.onnx"):
            autotailor.compile(bad)
    bad.write_bytes(rng.bytes(1000))
    with pytest.raises(GraphError, match=r"bad\.onnx is no valid ONNX file"):
        autotailor.compile(bad)


KERNELS = {"kernel": KERNEL, "fc": np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)}
STEM = "c = Conv (x, kernel)"
REFUSED = {
    "a circle": (f"{STEM}  t = Add (c, r)  r = Relu (t)  {HEAD}", "valid ONNX"),
    "nodes out of order": (f"{HEAD}  t = Conv (x, kernel)", "valid ONNX"),
    "a tensor from nowhere": (f"{STEM}  t = Add (c, nowhere)  {HEAD}", "valid ONNX"),
    "an operator that ONNX lacks": (f"{STEM}  t = Foo (c)  {HEAD}", "Foo"),
    "a sequence of tokens": ("f = Flatten <axis = 2> (x)  y = Unsqueeze (f, first)", "rest of the batch"),
    "a map that has shrunk away": (f"t = Conv <dilations = [9, 9]> (x, kernel)  {HEAD}", "shapes cannot|empty"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_is_refused_for(case: str, tmp_path: Path) -> None:
    body, message = REFUSED[case]
    onnx.save(model_of(body, {**KERNELS, "first": [0]}), str(tmp_path / "m.onnx"))
    with pytest.raises(AutoTailorError, match=message):
        autotailor.compile(tmp_path / "m.onnx")


@pytest.mark.parametrize("opset", [13, 20])
@pytest.mark.parametrize(("batch", "message"), [(4, r"not \[4, 5\]"), (5, "shapes cannot be inferred")])
def test_a_batch_that_the_graph_fixes_is_refused(batch: int, message: str, opset: int) -> None:
    """The numbers of one image do not divide into five rows; ONNX's inference does not count those of four rows."""
    images = np.ones((batch, 3, 8, 8), np.float32)
    body = f"{STEM}  r = Reshape (c, rows)  y = Gemm (r, wide)"
    rows = [4, 144] if batch == 4 else [5, -1]
    constants = {**KERNELS, "rows": rows, "wide": np.ones((144, 5), np.float32)}
    model = model_of(body, constants, shape=images.shape)
    model.opset_import[0].version = opset
    assert run(model, images).shape == (batch, 5)
    with pytest.raises(GraphError, match=f"{message}.*fixed to batches of {batch}: export it with a dynamic batch"):
        autotailor.compile(model)


def test_what_nobody_foresaw_is_an_error_that_names_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotailor.compiler.compile.parse", lambda *_: {}["key"])
    model = model_of(f"t = Conv (x, kernel)  {HEAD}", KERNELS)
    with pytest.raises(GraphError, match=r"graph g: it cannot be compiled \(KeyError: 'key'\).*error of autotailor"):
        autotailor.compile(model)


def test_outputs_that_nobody_reads_stay_where_onnx_wants_them(tmp_path: Path) -> None:
    body = f"{STEM}  t, i = TopK <axis = 1> (c, three)  {HEAD}"
    net = assert_same(model_of(body, {**KERNELS, "fc": KERNELS["fc"][:, :3], "three": [3]}))
    net.export_onnx(net.largest(), tmp_path / "largest.onnx")


def test_a_table_of_indices_is_static() -> None:
    body = f"{STEM}  g = Gather <axis = 2> (c, table)  t = ReduceMean <keepdims = 0> (g, last)  {HEAD}"
    net = assert_same(model_of(body, {**KERNELS, "table": [[0, 2, -1], [1, 3, 5]], "last": [3]}))
    assert [part.reason for part in net.static_parts] == ["its indices are computed, or a matrix"]


def test_an_output_may_leave_its_shape_open() -> None:
    assert_same(model_of(f"t = Conv (x, kernel)  {HEAD}", KERNELS, outputs="float[] y"))


def test_dead_code_is_dropped() -> None:
    """Disconnected nodes, unused weights, an input that nothing reads, a fixed batch that nothing depends on."""
    body = f"t = Conv (x, kernel)  dead = Relu (t)  island = Sigmoid (fc)  {HEAD}"
    constants = {**KERNELS, "unused": np.ones((9, 9))}
    net = assert_same(model_of(body, constants))
    again = autotailor.compile(model_of(body, constants, inputs="float[1, 3, 8, 8] x, float[2, 2] spare"))
    for found in (net, again):
        assert [n.kind for n in found.graph.nodes] == ["Conv", "GlobalAveragePool", "Flatten", "Gemm"]
        assert len(found.graph.weights) == 2


class Grey(nn.Module):
    """A network of grey images behind what the message for such networks advises."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            *networks.conv_bn(1, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(8, 4),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x.mean(1, keepdim=True))


def test_the_remedy_for_grey_images_works() -> None:
    torch.manual_seed(0)
    network = Grey().eval()
    buffer = io.BytesIO()
    torch.onnx.export(network, (torch.zeros(1, 3, 16, 16),), buffer, dynamo=False, opset_version=17)
    image = torch.randn(1, 3, 16, 16)
    for source in (network, onnx.load_from_string(buffer.getvalue())):
        net = autotailor.compile(source, resolution=16)
        with torch.no_grad():
            torch.testing.assert_close(net.build(net.largest())(image), network(image), rtol=1e-4, atol=1e-4)
    assert autotailor.compile(network.inner, resolution=16).input_shape == (1, 1, 16, 16)


@pytest.mark.parametrize("resolution", [0, -1, "32", 32.0, (32, 32), True])
def test_a_resolution_that_is_no_number_of_pixels_is_refused(resolution: Any) -> None:
    with pytest.raises(GraphError, match="expected the side of the square images in pixels"):
        autotailor.compile(networks.make("resnet"), resolution=resolution)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ("conf/model/mine.yaml", r"not the name 'conf/model/mine\.yaml'; read the file"),
        (Path("mine.yaml"), r"not the name 'mine\.yaml'; read the file"),
        (5, "expected names with their choices, not 5"),
    ],
)
def test_a_space_that_is_no_section_is_refused(space: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=f"space: .*{message}"):
        autotailor.compile(networks.make("resnet"), space, resolution=32)


def folded(name: str, dynamo: bool = False) -> onnx.ModelProto:
    """As PyTorch's exporters write networks by default: for inference."""
    return trace(networks.make(name), dynamo)


def trace(network: nn.Module, dynamo: bool = False) -> onnx.ModelProto:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            network.eval(), (torch.zeros(1, 3, 32, 32),), None if dynamo else buffer, dynamo=dynamo, verbose=False,
            opset_version=20 if dynamo else 17,
        )  # fmt: skip
    return program.model_proto if dynamo else onnx.load_from_string(buffer.getvalue())


def tf_named(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same file with tf2onnx's producer and names."""
    renamed = onnx.ModelProto()
    renamed.CopyFrom(model)
    renamed.producer_name = "tf2onnx"
    names: dict[str, str] = {}
    for position, proto in enumerate(renamed.graph.node):
        if proto.op_type == "Conv" and proto.input[1].startswith("onnx::"):
            for slot, word in ((1, "weights"), (2, "bias")):
                names[proto.input[slot]] = f"model/conv{position}/Conv2D_{word}_fused_bn"
                proto.input[slot] = names[proto.input[slot]]
    for tensor in renamed.graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    return renamed


def count(net: autotailor.SuperNet) -> int:
    return sum(node.kind == "BatchNormalization" for node in net.graph.nodes)


@pytest.mark.parametrize("source", ["classic", "dynamo", "tf2onnx"])
def test_what_the_exporter_folded_is_put_back_where_it_was(source: str) -> None:
    model = folded("mobilenet", dynamo=source == "dynamo")
    model = tf_named(model) if source == "tf2onnx" else model
    assert not any(proto.op_type == "BatchNormalization" for proto in model.graph.node)
    net = assert_same(model, tolerance=1e-5, space=networks.SPACES["mobilenet"])
    plain = autotailor.compile(networks.make("mobilenet"), networks.SPACES["mobilenet"], resolution=32)
    behind = [net.graph.producers[n.inputs[0]].kind for n in net.graph.nodes if n.kind == "BatchNormalization"]
    assert behind == ["Conv"] * count(plain)
    assert net.space == plain.space
    assert len(placeholders(net.graph)) == count(net)
    kept = assert_same(model, space=networks.SPACES["mobilenet"], batch_norm="keep")
    assert count(kept) == 0


class Plain(nn.Module):
    """Biased convolutions that never had a normalisation, one with standardised weights."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 2, 1)
        self.scaled = nn.Conv2d(16, 16, 3, padding=1)
        self.gate = nn.Conv2d(16, 16, 1)
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.stem(x))
        weight = (self.scaled.weight - self.scaled.weight.mean()) / self.scaled.weight.std()
        x = torch.relu(nn.functional.conv2d(x, weight, self.scaled.bias, padding=1))
        x = x * torch.sigmoid(self.gate(x.mean((2, 3), keepdim=True)))
        return self.head(x.mean((2, 3)))


@pytest.mark.parametrize("dynamo", [False, True])
def test_networks_without_normalisation_stay_so_unless_the_user_asks(dynamo: bool) -> None:
    torch.manual_seed(0)
    model = trace(Plain(), dynamo)
    assert count(assert_same(model)) == 0
    asked = assert_same(model, tolerance=1e-5, batch_norm="reinsert")
    assert count(asked) == 2  # the gate has maps of one pixel


def test_files_that_keep_batch_norm_are_left_alone() -> None:
    net = autotailor.compile(networks.make("resnet"), networks.SPACES["resnet"], resolution=32, batch_norm="reinsert")
    assert not placeholders(net.graph)
    with pytest.raises(GraphError, match="expected one of auto, reinsert, keep"):
        autotailor.compile(networks.make("resnet"), resolution=32, batch_norm="refold")  # type: ignore[arg-type]


class TestFirstCalibration:
    @pytest.fixture(scope="class")
    def model(self) -> onnx.ModelProto:
        return folded("mobilenet")

    @pytest.fixture(scope="class")
    def net(self, model: onnx.ModelProto) -> autotailor.SuperNet:
        return autotailor.compile(model, networks.SPACES["mobilenet"])

    @pytest.fixture(scope="class")
    def adopted(self, net: autotailor.SuperNet) -> autotailor.SuperNet:
        return accuracy.adopt_statistics(net, tiny_data.splits(), CALIBRATION)

    def test_the_largest_subnet_stays_the_same(self, model: onnx.ModelProto, adopted: autotailor.SuperNet) -> None:
        assert not placeholders(adopted.graph)
        image = np.random.default_rng(1).standard_normal((1, 3, 32, 32)).astype(np.float32)
        expected = run(model, image)
        with torch.no_grad():
            found = adopted.build(adopted.largest())(torch.from_numpy(image)).numpy()
        assert np.abs(found - expected).max() / np.abs(expected).max() < 1e-5

    def test_statistics_are_those_of_the_folded_network(
        self, net: autotailor.SuperNet, adopted: autotailor.SuperNet
    ) -> None:
        data = tiny_data.splits()
        images = next(iter(data.train.batches(0, 16)))[0]
        stem, first = net.graph.nodes[:2]
        with torch.no_grad():
            maps = net.module().eval()
            weight, bias = (maps.weight(name) for name in stem.inputs[1:3])
            outputs = torch.nn.functional.conv2d(images, weight, bias, stride=2, padding=1)
        once = accuracy.adopt_statistics(net, data, accuracy.CalibrationConfig(images=16, batch_size=16))
        gain, shift, mean, variance = (once.graph.weights[name] for name in first.inputs[1:])
        np.testing.assert_allclose(mean, outputs.mean((0, 2, 3)), atol=1e-5)
        np.testing.assert_allclose(variance, outputs.var((0, 2, 3)), rtol=1e-4)
        np.testing.assert_allclose(gain, np.sqrt(variance + 1e-5), rtol=1e-6)
        assert np.array_equal(shift, mean)
        assert accuracy.adopt_statistics(adopted, data, CALIBRATION) is adopted

    def test_every_subnet_can_be_recalibrated_from_then_on(
        self, net: autotailor.SuperNet, adopted: autotailor.SuperNet, tmp_path: Path
    ) -> None:
        data = tiny_data.splits()
        with pytest.raises(accuracy.AccuracyError, match="is not calibrated yet"):
            accuracy.calibrate(net.module().eval(), net.smallest(), data, CALIBRATION)
        smallest = adopted.smallest()
        statistics = accuracy.calibrate(adopted.module().eval(), smallest, data, CALIBRATION)
        images = data.train.batches(0, 16)
        batch = torch.nn.functional.interpolate(next(iter(images))[0], size=int(smallest["resolution"]))
        with torch.no_grad():
            module = adopted.module().eval().activate(smallest)
            stale = module(batch)
            module.statistics = statistics
            fresh = module(batch)
            built = adopted.build(smallest, statistics)(batch)
        assert torch.allclose(fresh, built, rtol=1e-4, atol=1e-4 * float(fresh.abs().max()))
        assert not torch.allclose(fresh, stale, rtol=1e-2)

    def test_finetuning_calibrates_first(self, net: autotailor.SuperNet, tmp_path: Path) -> None:
        data = tiny_data.splits()
        config = finetuning.FinetuneConfig(epochs=0, batch_size=16, calibration=CALIBRATION, accept_chance=True)
        result = finetuning.finetune(net, data, config, tmp_path)
        assert not placeholders(result.net.graph)
        subnet = result.net.largest()
        x = torch.randn(2, 3, 32, 32)
        with torch.no_grad():
            before, after = net.build(net.largest())(x), result.net.build(subnet)(x)
        assert after.shape == before.shape
        assert result.metrics["largest_validation_accuracy"] >= 0


def test_old_torch_numbers_folded_weights() -> None:
    model = folded("resnet")
    for tensor in model.graph.initializer:
        tensor.name = tensor.name.removeprefix("onnx::Conv_")
    for proto in model.graph.node:
        proto.input[:] = [name.removeprefix("onnx::Conv_") for name in proto.input]
    assert count(autotailor.compile(model)) == count(autotailor.compile(networks.make("resnet"), resolution=32))
    model.producer_name = "someone"
    assert count(autotailor.compile(model)) == 0
