"""One image in, one tensor out: what becomes static, and every input and output that is refused."""

import onnx_ir as ir
import pytest

from autotailor.compiler.passes.signature import LARGEST_SIDE, fix_signature
from autotailor.ir.errors import GraphError
from onnx_text import model_of, read

POOL = "y = GlobalAveragePool (x)"


def fixed(shape: tuple[int | str, ...], resolution: int | None = None) -> list[int | ir.SymbolicDim]:
    """The shape of the image after the pass."""
    model = read(model_of(POOL, shape=shape))
    fix_signature(model, resolution)
    image = model.graph.inputs[0].shape
    assert image is not None
    return list(image)


@pytest.mark.parametrize("batch", [1, 16, "n"])
def test_the_batch_becomes_one(batch: int | str) -> None:
    assert fixed((batch, 3, 8, 6)) == [1, 3, 8, 6]


@pytest.mark.parametrize(
    ("shape", "expected"), [(("n", 3, "h", "w"), [1, 3, 48, 48]), ((1, 3, "h", 48), [1, 3, 48, 48])], ids=str
)
def test_dynamic_sides_become_the_resolution(shape: tuple[int | str, ...], expected: list[int]) -> None:
    assert fixed(shape, 48) == expected


def test_a_resolution_that_the_file_has_is_no_conflict() -> None:
    assert fixed((1, 3, 48, 48), 48) == [1, 3, 48, 48]
    assert fixed((1, 3, 64, 48), None) == [1, 3, 64, 48]


def test_shapes_behind_the_image_are_forgotten() -> None:
    model = read(model_of("r = Relu (x)  y = GlobalAveragePool (r)", shape=(16, 3, 8, 8)))
    assert model.graph[0].outputs[0].shape == (16, 3, 8, 8)
    fix_signature(model, None)
    assert [value.shape for node in model.graph for value in node.outputs] == [None, None]


def test_weights_among_the_inputs_are_no_inputs() -> None:
    inputs = "float[3, 1, 1] w, float[1, 3, 8, 8] x"
    model = read(model_of("y = Mul (x, w)", {"w": [[[1.0]], [[2.0]], [[3.0]]]}, inputs=inputs))
    fix_signature(model, None)
    assert [value.name for value in model.graph.inputs] == ["x"]
    assert "w" in model.graph.initializers


def test_an_input_that_nobody_reads_is_dropped() -> None:
    model = read(model_of(POOL, inputs="float[2, 2] spare, float[1, 3, 8, 8] x"))
    fix_signature(model, None)
    assert [value.name for value in model.graph.inputs] == ["x"]


REFUSED = {
    "two inputs": (
        {"body": "y = Add (x, z)", "inputs": "float[1, 3, 8, 8] x, float[1, 3, 8, 8] z"},
        r"this one has 2 \(x, z\) and 1 \(y\); .*extract_model",
    ),
    "no input": ({"body": "y = Relu (w)", "weights": {"w": [1.0]}}, r"this one has 0 \(\) and 1 \(y\)"),
    "sequence": ({"inputs": "seq(float[1, 3, 8, 8]) x"}, "expected a float tensor"),
    "one number": ({"inputs": "float x"}, "which is no batch of images or signals"),
    "any shape": ({"inputs": "float[] x"}, "of shape None; expected a float tensor"),
    "bytes": ({"kind": "uint8"}, "is UINT8 .* export the network without these steps"),
    "rows": ({"shape": (1, 784)}, "which is no batch of images or signals"),
    "video": ({"shape": (1, 3, 4, 8, 8)}, "which is no batch of images or signals"),
    "grey, channels last": ({"shape": (1, 32, 32, 1)}, "channels last.*--inputs-as-nchw x"),
    "channels last, dynamic": ({"shape": ("n", "h", "w", 3)}, "dynamic axes besides the batch"),
    "no channels": ({"shape": (1, 0, 8, 8)}, r"of shape \[1, 0, 8, 8\] is empty"),
    "dynamic side": ({"shape": (1, 3, "h", 8)}, r"dynamic axes besides the batch .*'h'.*give the image size"),
    "dynamic channels": ({"shape": (1, "c", 8, 8), "resolution": 8}, "dynamic axes besides the batch"),
    "empty": ({"shape": (1, 3, 0, 8)}, "is empty"),
    "too large": ({"shape": (1, 3, LARGEST_SIDE + 1, 8)}, f"are too large; {LARGEST_SIDE} pixels are the limit"),
    "resolution too large": ({"shape": (1, 3, "h", "w"), "resolution": LARGEST_SIDE + 1}, "are too large"),
    "a resolution that only the channels have": (
        {"shape": (1, 3, 8, 8), "resolution": 3},
        "is fixed to images of shape",
    ),
    "not square": ({"shape": (1, 3, 8, 12), "resolution": 12}, "images of 8 x 12 pixels, .* or with dynamic sides"),
    "a dynamic side beside another resolution": (
        {"shape": (1, 3, "h", 12), "resolution": 8},
        "images of 8 x 12 pixels, .* for square images",
    ),
    "another resolution": ({"shape": (1, 3, 8, 8), "resolution": 16}, "is fixed to images of shape"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_classifier_of_images_is_refused_with_the_remedy(case: str) -> None:
    options, message = REFUSED[case]
    options = dict(options)
    resolution = options.pop("resolution", None)
    model = ir.from_proto(model_of(options.pop("body", POOL), options.pop("weights", None), **options))
    with pytest.raises(GraphError, match=message):
        fix_signature(model, resolution)


def test_the_largest_side_is_taken() -> None:
    assert fixed((1, 3, LARGEST_SIDE, 8))[2] == LARGEST_SIDE
