"""The small MobileNet."""

from torch import nn

from autotailor import zoo


def test_some_inverted_residuals_have_no_skip() -> None:
    blocks = [m for m in zoo.mobilenet_digits().modules() if hasattr(m, "has_skip")]
    assert {block.has_skip for block in blocks} == {True, False}
    assert any(isinstance(m, nn.Conv2d) and m.groups > 1 for m in zoo.mobilenet_digits().modules())
