"""Licences of weights, as timm and torchvision record them."""

import pytest

from autotailor.reporting.card.facts import licence_of_weights


@pytest.mark.parametrize(
    ("source", "weights", "said", "identifier"),
    [
        ("timm:resnet50", None, "apache-2.0, says timm of resnet50.a1_in1k", "apache-2.0"),
        ("timm:resnet50", "seeds/theirs.pt", "not known: ask who trained it", ""),
        ("theirs.onnx", None, "not known: ask who trained it", ""),
        ("timm:resnet50", "pretrain", "none to keep: the run trained all weights itself, from scratch", ""),
        (
            "torchvision.models:regnet_y_16gf",
            "seeds/regnet_y_16gf_swag-43afe44d.pth",
            "https://github.com/facebookresearch/SWAG/blob/main/LICENSE, says torchvision of "
            "RegNet_Y_16GF_Weights.IMAGENET1K_SWAG_E2E_V1",
            "",
        ),
        ("torchvision.models:resnet50", "resnet50-0676ba61.pth", "not known: ask who trained it", ""),
        ("torchvision.models:my_own", "mine.pth", "not known: ask who trained it", ""),
    ],
)
def test_the_licence_is_that_of_the_weights(source: str, weights: str | None, said: str, identifier: str) -> None:
    found = licence_of_weights(source, weights)
    assert (found.text, found.identifier) == (said, identifier)
