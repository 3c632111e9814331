"""The table: paired differences, and the cost of training."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from controls.figure import front_figure
from controls.outcome import Outcome
from controls.parts import ALONE, INHERITED, ORIGINAL, POLISHED, SCALED, SLICED, WHOLE, Part
from controls.shown import cell, losses, show, training
from controls.table import costs, rows
from rich.console import Console

GROUPS = np.repeat(np.arange(10), 2)


def outcome(wrong: int, **more: Any) -> Outcome:
    """An outcome with some of 20 images wrong, the first ones."""
    return Outcome(90.0, np.arange(20) >= wrong, "width 0.5", 0.5, **more)


@pytest.fixture
def parts() -> list[Part]:
    found = {(ORIGINAL, WHOLE): outcome(2), (INHERITED, 50): outcome(8), (POLISHED, 50): outcome(3, passes=300)}
    found |= {(ALONE, 50): outcome(4, passes=1000, tried=((0.01, 1.0), (0.03, 2.0))), (SLICED, 50): outcome(6)}
    return [Part("tiny", 0, method, budget, each) for (method, budget), each in found.items()]


def test_losses_are_paired_with_the_original_and_with_the_polished_subnet(parts: list[Part]) -> None:
    table = rows(parts, GROUPS).set_index("method")
    assert table.loc["polished", ["accuracy", "loss", "behind_polished"]].tolist() == pytest.approx([85, 5, 0])
    assert table.loc["sliced", ["accuracy", "loss", "behind_polished"]].tolist() == pytest.approx([70, 20, 15])
    assert np.isnan(table.loc["original", "behind_polished"])
    assert table.loc["original", "loss_error"] == 0
    assert table.loc["polished", "loss_error"] > 0
    assert table["lr_at_end"].tolist() == [False, False, False, True, False]


def test_without_the_original_a_loss_is_not_known(parts: list[Part]) -> None:
    table = rows(parts[1:], GROUPS)
    assert table["loss"].isna().all()
    assert table["accuracy"].notna().all()


def test_the_cost_of_k_budgets(run: Any, parts: list[Part]) -> None:
    table = costs(run, parts).set_index("method")
    shared = 96 + 3 * 3 * 2 * 16  # pretraining, and 9 steps of 2 SubNets with 16 images each
    assert table.loc["polished", ["shared", "each", "total_8", "total_40"]].tolist() == [
        shared, 300, shared + 8 * 300, shared + 40 * 300,
    ]  # fmt: skip
    assert table.loc["alone", ["shared", "total_8"]].tolist() == [0, 8000]
    assert table.loc["sliced", "shared"] == 96
    assert SCALED not in table.index


def test_the_mean_over_seeds_has_the_error_of_independent_draws() -> None:
    two = pd.DataFrame({"loss": [1.0, 2.0], "loss_error": [0.3, 0.4], "accuracy": [90, 91], "lr_at_end": [False, True]})
    assert cell(two) == "+1.50 ± 0.25! (2)\n90.5"
    assert cell(two.iloc[:0]) == ""


def test_what_is_printed(run: Any, parts: list[Part], capsys: pytest.CaptureFixture[str]) -> None:
    table, totals = rows(parts, GROUPS).assign(operators_known="6 of 36"), costs(run, parts)
    show(table, totals)
    assert "the LUT knows 6 of 36" in capsys.readouterr().out
    console = Console(width=200)
    with console.capture() as captured:
        console.print(losses(table, "a"), training(totals, "b"))
    assert "+5.00" in captured.get()
    assert f"{(384 + 8 * 300) / 8000:.0%} of alone" in captured.get()


def test_the_figure_has_a_line_for_each_method(parts: list[Part]) -> None:
    axes = front_figure("tiny", rows(parts, GROUPS)).axes[0]
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["original", "inherited", "polished", "alone", "sliced"]
