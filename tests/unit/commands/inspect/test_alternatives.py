"""Alternatives of blocks that ``inspect`` proposes."""

import argparse

import pytest
import yaml
from tests import networks

import autotailor
from autotailor.commands.inspect.alternatives import fitting, usual
from autotailor.commands.inspect.configuration import model_configuration
from autotailor.ir.alternatives.alternative import alternatives
from autotailor.ir.junctions import OPERATOR

LINE = "  # alternatives: "


def test_what_every_kind_usually_asks_for_is_among_its_choices() -> None:
    for kind, asked in alternatives().items():
        choices = asked.choices(asked.usual if isinstance(asked.usual, bool) else list(asked.usual))
        assert {choice.partition(":")[0] for choice in choices} == {kind}


@pytest.mark.parametrize(
    ("name", "kinds"), [("resnet", set(alternatives())), ("transformer", {"low_rank", "shrunk", "merged"})]
)
def test_the_proposal_without_its_comment_sign_is_the_space_with_all_kinds_that_fit(name: str, kinds: set[str]) -> None:
    net = autotailor.compile(networks.make(name), {}, resolution=32)
    options = argparse.Namespace(
        source="mine.onnx", weights=None, batch_norm="auto", output=None, data=None, resolution=None, mean=None,
        std=None, task=None, random_weights=False,
    )  # fmt: skip
    (line,) = (line for line in model_configuration(net, options).splitlines() if line.startswith(LINE))
    space = yaml.safe_load(line.replace("# ", ""))
    assert space == {"alternatives": usual(net)}
    assert set(fitting(net)) == kinds
    with_all = autotailor.compile(networks.make(name), space, resolution=32)
    chosen = {choice for variable in with_all.space if variable.kind == OPERATOR for choice in variable.choices}
    assert {str(choice).partition(":")[0] for choice in chosen} - {"original"} == kinds
    assert LINE not in model_configuration(with_all, options)
