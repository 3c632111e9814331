"""The model and the data cannot contradict each other in silence."""

from pathlib import Path

import pytest

from autotailor import config
from autotailor.agreement import BYTE, AgreementError, check_classes, check_pixels, settle_resolution
from autotailor.ir.given import Given

ROOT = Path(__file__).parents[2]
CONF = ROOT / "conf"


@pytest.mark.parametrize("model", config.options(CONF, "model"))
def test_every_model_of_conf_gets_images_of_its_own_resolution(model: str) -> None:
    composed = config.compose(CONF, model, "host")
    assert composed["data"]["resolution"] == composed["model"]["resolution"]


SIGNALS = {"arrays", "series"}  # which have their own length


@pytest.mark.parametrize("data", sorted({*config.options(CONF, "data")} - SIGNALS))
def test_all_data_follow_the_model(data: str) -> None:
    composed = config.compose(CONF, "resnet_digits", "host", [f"data={data}", "model.resolution=48"])
    assert composed["data"]["resolution"] == composed["model"]["resolution"] == 48


def test_a_network_of_bytes_gets_numbers_from_0_to_255() -> None:
    section = {"mean": [0.485, 0.456, 0.406], "std": [0.2, 0.2, 0.2]}
    with pytest.raises(AgreementError, match=r"takes bytes.*set data.mean to \[0, 0, 0\] and data.std to \[0.0039"):
        check_pixels(Given(is_bytes=True), "net.onnx", section)
    check_pixels(Given(channels_last=True), "net.onnx", section)
    check_pixels(Given(is_bytes=True), "net.onnx", {"mean": [0.0] * 3, "std": [BYTE] * 3})


def test_two_resolutions_are_refused_with_both_numbers() -> None:
    with pytest.raises(
        AgreementError, match=r"model.resolution is 32 and data.resolution is 64.*Change model.resolution"
    ):
        config.compose(CONF, "resnet_digits", "host", ["data.resolution=64"])


def test_a_resolution_that_is_null_is_the_other_one() -> None:
    composed = config.compose(CONF, "resnet_digits", "host", ["model.resolution=null", "data.resolution=24"])
    assert composed["model"]["resolution"] == 24
    with pytest.raises(AgreementError, match=r"set model\.resolution"):
        config.compose(CONF, "resnet_digits", "host", ["model.resolution=null"])
    assert settle_resolution({"model": {}, "data": {"resolution": 3}}) == {"model": {}, "data": {"resolution": 3}}


def test_another_number_of_classes_is_refused_with_both_numbers() -> None:
    check_classes({"source": "m.onnx", "num_classes": 10}, {"name": "digits"})
    check_classes({"source": "m.onnx", "num_classes": None}, {"name": "digits"})
    with pytest.raises(
        AgreementError, match=r"m\.onnx has 7 outputs, the data digits have 10 classes \(0, 1, 2, 3, 4 \.\.\.\)"
    ):
        check_classes({"source": "m.onnx", "num_classes": 7}, {"name": "digits"})
    with pytest.raises(
        AgreementError, match=r"has 12 outputs.* model\.num_classes is wrong, set model\.num_classes to 10"
    ):
        config.check(config.compose(CONF, "resnet_digits", "host", ["model.num_classes=12"]))
