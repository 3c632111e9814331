"""Files from strangers: no file beside the model's folder is read, no size is believed, no weight is nonsense."""

import functools
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import autotailor
import networks
from autotailor.compiler.sources import onnx_file
from autotailor.ir.errors import GraphError
from onnx_text import HEAD, KERNEL, Array, model_of

SECRET = np.arange(5 * 4, dtype=np.float32).reshape(5, 4)
BODY = f"t = Conv (x, kernel)  {HEAD}"


def classifier(fc: Array = SECRET) -> onnx.ModelProto:
    return model_of(BODY, {"kernel": KERNEL, "fc": fc})


def reads_from(location: str, **entries: int | str) -> onnx.ModelProto:
    """A classifier whose last matrix lies in a file."""
    model = classifier()
    tensor = model.graph.initializer[1]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return model


@functools.cache
def dynamo_export() -> tuple[bytes, bytes]:
    """The model's and the weights' bytes, as PyTorch's exporter writes them since 2.9."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mine.onnx"
        torch.onnx.export(
            networks.make("resnet"), (torch.zeros(1, 3, 32, 32),), path, dynamo=True, external_data=True, verbose=False
        )
        return path.read_bytes(), path.with_name("mine.onnx.data").read_bytes()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The model's folder, which is the working directory; a secret lies beside it."""
    own = tmp_path / "own"
    own.mkdir()
    (tmp_path / "secret.bin").write_bytes(SECRET.tobytes())
    monkeypatch.chdir(own)
    return own


@pytest.mark.parametrize("name", ["evil.onnx", "./evil.onnx", "../own/evil.onnx", "absolute"])
@pytest.mark.parametrize(
    "location", ["../secret.bin", "absolute", "sub/../../secret.bin", "link.bin", "linked/secret.bin"]
)
def test_no_file_outside_the_models_folder_is_read(name: str, location: str, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "link.bin").symlink_to("../secret.bin")
    (folder / "linked").symlink_to("..")
    location = str(folder.parent / "secret.bin") if location == "absolute" else location
    onnx.save(reads_from(location), "evil.onnx")
    with pytest.raises(GraphError, match="outside the model's folder"):
        autotailor.compile(str(folder / "evil.onnx") if name == "absolute" else name)


def test_tensors_of_attributes_and_functions_are_held_to_the_same(folder: Path) -> None:
    hidden = reads_from("../secret.bin").graph.initializer[1]
    stored = "fc = Constant <value = float {0.0}> ()"
    attribute = model_of(f"{stored}  {BODY}", {"kernel": KERNEL})
    attribute.graph.node[0].attribute[0].t.CopyFrom(hidden)
    function = f'<domain: "own", opset_import: ["" : 20]> Secret () => (fc) {{ {stored} }}'
    hiding = model_of(f"fc = own.Secret ()  {BODY}", {"kernel": KERNEL}, functions=function)
    hiding.functions[0].node[0].attribute[0].t.CopyFrom(hidden)
    for model in (attribute, hiding):
        onnx.save(model, "evil.onnx")
        with pytest.raises(GraphError, match="outside the model's folder"):
            autotailor.compile("evil.onnx")


@pytest.mark.parametrize("how", ["bare", "relative", "absolute", "other folder", "linked model", "linked weights"])
def test_external_data_beside_the_model_is_read_from_everywhere(
    how: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "mine.onnx").write_bytes(dynamo_export()[0])
    (folder / "mine.onnx.data").write_bytes(dynamo_export()[1])
    path = Path("mine.onnx")
    if how == "relative":
        path = Path("../own/mine.onnx")
    elif how == "absolute":
        path = folder / "mine.onnx"
    elif how == "other folder":
        monkeypatch.chdir("/")
        path = Path(os.path.relpath(folder)) / "mine.onnx"
    elif how.startswith("linked"):  # as the Hugging Face hub keeps its files
        blobs = folder.parent / "blobs"
        blobs.mkdir()
        (folder / "mine.onnx").rename(blobs / "1")
        (folder / "mine.onnx.data").rename(blobs / ("2" if how == "linked weights" else "mine.onnx.data"))
        (folder / "mine.onnx").symlink_to("../blobs/1")
        (folder / "mine.onnx.data").symlink_to("../blobs/" + ("2" if how == "linked weights" else "mine.onnx.data"))
    net = autotailor.compile(path, {}, batch_norm="keep")
    image = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        expected = networks.make("resnet")(image)
        torch.testing.assert_close(net.build(net.largest())(image), expected, rtol=1e-3, atol=1e-3)
        net.export_onnx(net.largest(), "/" / folder / "again.onnx")
        net.save(folder / "net.pt")
        for again in (autotailor.compile(folder / "again.onnx", {}), autotailor.load(folder / "net.pt")):
            torch.testing.assert_close(again.build(again.largest())(image), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"length": 79}, "needs 80 bytes, but names 79"),
        ({"length": 1 << 40}, "needs 80 bytes"),
        ({"offset": 4}, r"needs bytes 4 to 84 of w\.bin, which has 80"),
        ({"offset": -4}, "has the offset '-4'"),
        ({"offset": "1e3"}, "has the offset"),
        ({"length": "9" * 4000}, "has the length"),
    ],
)
def test_offsets_and_lengths_are_those_of_the_file(entries: dict[str, int | str], message: str, folder: Path) -> None:
    (folder / "w.bin").write_bytes(SECRET.tobytes())
    onnx.save(reads_from("w.bin", **entries), "m.onnx")
    with pytest.raises(GraphError, match=message):
        autotailor.compile("m.onnx")


@pytest.mark.parametrize("location", ["", ".", "nothing.bin", "sub", "\0", "a" * 5000])
def test_external_data_that_is_no_file_is_named(location: str, folder: Path) -> None:
    (folder / "sub").mkdir()
    onnx.save(reads_from(location), "m.onnx")
    with pytest.raises(GraphError, match="weight fc"):
        autotailor.compile("m.onnx")


def test_weights_that_read_one_file_again_and_again_are_refused(folder: Path) -> None:
    (folder / "w.bin").write_bytes(SECRET.tobytes())
    model = reads_from("w.bin")
    for number in range(onnx_file.ALIASES):
        tensor = model.graph.initializer.add()
        tensor.CopyFrom(model.graph.initializer[1])
        tensor.name = f"copy{number}"
    onnx.save(model, "m.onnx")
    with pytest.raises(GraphError, match="they overlap"):
        autotailor.compile("m.onnx")


def test_weights_that_do_not_fit_into_memory_are_refused_before_they_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "w.bin").write_bytes(SECRET.tobytes())
    onnx.save(reads_from("w.bin"), "m.onnx")
    monkeypatch.setattr(onnx_file.psutil, "virtual_memory", lambda: SimpleNamespace(available=79))
    opened, really = list[str](), Path.open
    monkeypatch.setattr(Path, "open", lambda path, *mode: opened.append(path.name) or really(path, *mode))
    with pytest.raises(GraphError, match="bytes of memory"):
        autotailor.compile("m.onnx")
    assert "w.bin" not in opened


def test_external_data_of_a_model_in_memory_has_no_folder(folder: Path) -> None:
    (folder / "secret.bin").write_bytes(SECRET.tobytes())
    with pytest.raises(GraphError, match=r"give the path of the \.onnx file"):
        autotailor.compile(reads_from("secret.bin"))


@pytest.mark.parametrize("dims", [[1 << 40, 4], [5, -4], [5, 4, 1 << 62], [0], [5]])
def test_shapes_that_the_data_do_not_have_are_refused(dims: list[int], folder: Path) -> None:
    model = classifier()
    model.graph.initializer[1].dims[:] = dims
    onnx.save(model, "m.onnx")
    with pytest.raises(GraphError, match="weight fc"):
        autotailor.compile("m.onnx")


@pytest.mark.parametrize(
    "tensor",
    [
        helper.make_tensor("fc", TensorProto.FLOAT, (5, 4), SECRET.ravel()),
        helper.make_tensor("fc", TensorProto.FLOAT16, (5, 4), SECRET.ravel()),
        helper.make_tensor("fc", TensorProto.DOUBLE, (5, 4), SECRET.ravel()),
        helper.make_tensor("fc", TensorProto.BFLOAT16, (5, 4), SECRET.ravel()),
        numpy_helper.from_array(SECRET.astype(np.float16), "fc"),
    ],
    ids=["float", "half as integers", "double", "bfloat16", "raw half"],
)
def test_every_way_of_writing_numbers_is_read(tensor: onnx.TensorProto) -> None:
    model = classifier()
    if tensor.data_type != TensorProto.FLOAT:  # the IR computes in single precision
        model.graph.node.insert(0, helper.make_node("Cast", ["half"], ["fc"], to=TensorProto.FLOAT))
        tensor.name = "half"
    model.graph.initializer[1].CopyFrom(tensor)
    net = autotailor.compile(model)
    np.testing.assert_array_equal(net.graph.weights[net.graph.nodes[-1].inputs[1]], SECRET)
