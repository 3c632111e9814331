"""Texts of ``.param``: further names for the input and the output of a converted network."""

import ncnn
import numpy as np
import pytest

from autotailor.profiling.runtimes.ncnn.param import param_text, with_names

TEXT = param_text(["Input in0 0 1 in0", "ReLU relu 1 1 in0 1", "Power twice 1 1 1 out0 1=2.0"])
IMAGE = np.array([-1.0, 2.0, 3.0], dtype=np.float32)


def computed(text: str, given: str, asked: str, folder: str) -> list[float]:
    """What ncnn computes of the image; the layers have no weights."""
    with open(f"{folder}/model.param", "w") as stream:
        stream.write(text)
    net = ncnn.Net()
    assert net.load_param(f"{folder}/model.param") == 0
    open(f"{folder}/model.bin", "w").close()
    assert net.load_model(f"{folder}/model.bin") == 0
    extractor = net.create_extractor()
    assert extractor.input(given, ncnn.Mat(IMAGE).clone()) == 0
    code, found = extractor.extract(asked)
    assert code == 0, (given, asked)
    return np.array(found).tolist()


@pytest.mark.parametrize(
    ("image", "logits", "given", "asked"),
    [
        ("pixels", "scores", "pixels", "scores"),
        ("pixel values", "the scores", "pixel_values", "the_scores"),
        ("input.1", "1", "input.1", "1"),
        ("1", "9", "1", "9"),
        ("in0", "out0", "in0", "out0"),
    ],
    ids=["plain", "blanks", "output named as a blob inside", "input named as a blob inside", "pnnx's"],
)
def test_a_network_runs_by_its_own_names_and_by_pnnxs(
    image: str, logits: str, given: str, asked: str, tmp_path: str
) -> None:
    named = with_names(TEXT, image, logits)
    assert computed(named, given, asked, tmp_path) == [0.0, 4.0, 6.0]
    assert computed(named, "in0", "out0", tmp_path) == [0.0, 4.0, 6.0]


def test_pnnxs_names_alone_change_nothing() -> None:
    assert with_names(TEXT, "in0", "out0") == TEXT
