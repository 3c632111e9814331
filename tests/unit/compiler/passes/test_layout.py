"""Images in bytes or channels last: the SuperNet takes floats, channels first; the given interface can be put back."""

import numpy as np
import onnxruntime
import pytest

import autotailor
from autotailor.ir.execution.onnx_writer import to_onnx
from autotailor.ir.given import Given
from onnx_text import HEAD, KERNEL, model_of

SCALES = {
    "k": KERNEL,
    "fc": np.eye(5, 4, dtype=np.float32),
    "m": np.full(3, 9, np.float32),
    "s": np.full(3, 60, np.float32),
}
CONV = f"t = Conv <pads = [1, 1, 1, 1]> (i, k)  {HEAD}"
TURN = "Transpose <perm = [0, 3, 1, 2]>"
CASES = {
    "channels last": ("float", (1, 8, 8, 3), f"i = {TURN} (x)  {CONV}", Given(True), "Conv"),
    "scaled before it is turned": (
        "float",
        ("n", 8, 8, 3),
        f"d = Sub (x, m)  i = {TURN} (d)  {CONV}",
        Given(True),
        "Transpose",
    ),
    "bytes": ("uint8", (1, 3, 8, 8), f"i = Cast <to = 1> (x)  {CONV}", Given(False, True), "Conv"),
    "bytes, channels last": (
        "uint8",
        (1, 8, 8, 3),
        f"c = Cast <to = 1> (x)  d = Div (c, s)  i = {TURN} (d)  {CONV}",
        Given(True, True),
        "Transpose",
    ),
    "bytes, turned before they are floats": (
        "uint8",
        (1, 8, 8, 3),
        f"c = {TURN} (x)  i = Cast <to = 1> (c)  {CONV}",
        Given(True, True),
        "Conv",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_network_takes_floats_channels_first_and_the_given_image_is_put_back(case: str) -> None:
    kind, shape, body, expected, first = CASES[case]
    model = model_of(body, SCALES, shape=shape, kind=kind)
    net = autotailor.compile(model, {})
    assert net.input_shape == (1, 3, 8, 8)
    assert net.graph.given == expected
    assert net.graph.nodes[0].kind == first
    images = np.random.default_rng(0).uniform(0, 255, (1, 3, 8, 8)).astype(np.float32)
    given = net.slice(net.smallest()).given
    restored = given.restored(to_onnx(net.graph, names=net.names))
    there, back = (onnxruntime.InferenceSession(each.SerializeToString()) for each in (model, restored))
    assert [back.get_inputs()[0].name, back.get_inputs()[0].type] == ["x", there.get_inputs()[0].type]
    feed = {"x": given.taken(images)}
    np.testing.assert_allclose(back.run(None, feed)[0], there.run(None, feed)[0], rtol=1e-5)


def test_what_a_file_took_is_kept_with_the_supernet(tmp_path_factory: pytest.TempPathFactory) -> None:
    kind, shape, body, expected, _ = CASES["bytes"]
    path = tmp_path_factory.mktemp("net") / "net.pt"
    autotailor.compile(model_of(body, SCALES, shape=shape, kind=kind), {}).save(path)
    assert autotailor.load(path).graph.given == expected
