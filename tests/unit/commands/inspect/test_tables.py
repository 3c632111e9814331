"""What ``inspect`` says of variables that a network almost has."""

import pytest
from tests import networks
from torch import nn

import autotailor
from autotailor.commands.inspect.tables import magnitude, print_inspection


class Block(nn.Module):
    """An inverted residual with a kernel of 5x5, padded by a module or by itself."""

    def __init__(self, pad: nn.Module, own: int) -> None:
        super().__init__()
        depthwise = nn.Conv2d(16, 16, 5, padding=own, groups=16)
        self.body = nn.Sequential(nn.Conv2d(8, 16, 1), nn.ReLU(), pad, depthwise, nn.ReLU(), nn.Conv2d(16, 8, 1))

    def forward(self, x):  # type: ignore[no-untyped-def]
        return x + self.body(x)


@pytest.mark.parametrize(
    ("pad", "own", "said"),
    [
        (nn.ReflectionPad2d(2), 0, "No kernel_size for block1, kernel of 5 x 5: a Pad (mode reflect) in front of it"),
        (nn.ZeroPad2d(2), 0, ""),
        (nn.Identity(), 2, ""),
    ],
)
def test_a_kernel_that_cannot_shrink_has_its_reason(
    pad: nn.Module, own: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stem, end = nn.Conv2d(3, 8, 3, 2, 1), (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
    net = autotailor.compile(nn.Sequential(stem, nn.ReLU(), Block(pad, own), *end).eval(), resolution=32)
    print_inspection(net, proposed=True)
    shown = " ".join(capsys.readouterr().out.split())
    assert said in shown
    assert bool(said) == ("No kernel_size" in shown)


@pytest.mark.parametrize(
    ("space", "notes"),
    [
        ({}, ["fire for 5 of 5 blocks", "merged for 4 of 5 blocks."]),
        (
            {"alternatives": {"merged": [1, 2]}, "depth": {"stage1": [0], "stage2": [0, 1]}},
            [
                "No merged block for 3 blocks from block1 on: none of its blocks has the shapes of both ends.",
                "No merged block for 3 blocks from block3 on: depth removes a later one of its blocks",
                "No merged block for 2 blocks from block4 on: depth removes a later one of its blocks",
            ],
        ),
    ],
)
def test_notes_say_where_blocks_merge_and_where_not(
    space: dict[str, object], notes: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    print_inspection(autotailor.compile(networks.make("resnet"), space, resolution=32), proposed=False)
    shown = " ".join(capsys.readouterr().out.split())
    assert [note for note in notes if note not in shown] == []
    assert shown.count("No merged block") == len(notes) * bool(space)


def test_the_stages_behind_which_an_exit_can_stand_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    print_inspection(autotailor.compile(networks.make("resnet"), {}, resolution=32), proposed=False)
    assert "`space.exits` can ask for: {after: [stage1]}." in " ".join(capsys.readouterr().out.split())


def test_more_subnets_than_a_float_holds_have_an_order_of_magnitude() -> None:
    assert [magnitude(12_345_678), magnitude(10**308), magnitude(7 * 10**500)] == ["1.23e+07", "1e+308", "1e+500"]
