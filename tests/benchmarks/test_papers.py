"""The methods of other papers: answers that are kept, the pairs of the table, and what a budget takes."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from papers.answers import UNKNOWN, Answer, read_all, standings, table
from papers.campaign import ALTERNATIVES, METHODS, MORE, Campaign, least, right_where_left, widest
from papers.costs import lines, own_images
from papers.figures import costs, fronts

from autotailor.exits.answers import Answers
from autotailor.ir.supernet import SuperNet
from autotailor.search import cost_of_device

ROOT = Path(__file__).parents[2]


def answer(method: str, budget: int, right: list[bool], latency: float = 0.0, polished: float = 0.0) -> Answer:
    found = np.array(right)
    return Answer(method, 0, budget, latency or budget, method, 100, 50.0, polished, ~found, found)


def test_an_answer_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = answer("adascale, exits", 30, [True, False, True])
    written.write(tmp_path)
    (read,) = read_all(tmp_path)
    assert Answer.path(tmp_path, "adascale, exits", 0, 30).exists()
    assert (read.method, read.budget, read.polished_right.tolist()) == ("adascale, exits", 30, [True, False, True])


def test_a_rival_is_behind_by_the_pictures_that_ours_alone_has_right() -> None:
    ours, theirs = (
        answer("autotailor", 50, [True, True, True, False]),
        answer("legodnn", 50, [True, False, False, False]),
    )
    rows = table([theirs, ours], np.arange(4), ("autotailor", "legodnn")).set_index("method")
    assert rows.loc["legodnn", "polished_behind"] == pytest.approx(50.0)
    assert rows.loc["legodnn", "inherited_behind"] == pytest.approx(-50.0)
    assert rows.loc["autotailor", "polished_behind"] == 0
    _, standing = standings(rows.reset_index())
    assert (standing["best rival"], standing["ahead"]) == ("legodnn", pytest.approx(-50.0))


def test_a_variant_of_ours_is_compared_with_rivals_and_is_none_itself() -> None:
    right = {"autotailor": [True, False], ALTERNATIVES: [True, True], "legodnn": [False, True]}
    answers = [answer(method, 50, pictures) for method, pictures in right.items()]
    answers.append(replace(answer("legodnn", 50, [True, True]), seed=1))
    for ours, ahead in (("autotailor", 0.0), (ALTERNATIVES, -50.0)):
        _, standing = standings(table(answers, np.arange(2), METHODS, ours), ours)
        assert (standing["best rival"], standing["theirs"], standing["ahead"]) == ("legodnn", 50.0, ahead)


def test_a_variant_is_a_methods_file_with_more_overrides_in_a_folder_of_its_own(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, "mine", "host", ("seed=3",), tmp_path / "methods", (50,), (50,), 8)
    run = campaign.run(ALTERNATIVES, 1)
    assert run.overrides[0] == "method=autotailor"
    assert set(MORE[ALTERNATIVES]) < set(run.overrides)
    assert run.folder.name == "autotailor_alternatives_1"


def test_budgets_of_macs_need_no_table_and_are_shares_of_what_the_graph_says(
    tmp_path: Path, resnet_net: SuperNet
) -> None:
    (tmp_path / "conf").symlink_to(ROOT / "conf")
    campaign = Campaign(tmp_path, "resnet_digits", "macs", (), tmp_path / "methods", (50,), (50,), 8)
    run = SimpleNamespace(original=resnet_net)
    assert campaign.by_table == []
    smallest = resnet_net.smallest()
    share = resnet_net.macs().predict(smallest.to_array()) / resnet_net.macs().predict(resnet_net.largest().to_array())
    assert campaign.share(run, resnet_net, smallest) == pytest.approx(float(share[0]))  # type: ignore[arg-type]
    host = replace(campaign, device="host", directory=tmp_path / "host")
    assert host.by_table == [f"profile.lut={host.table}"]


def test_a_budget_takes_the_widest_network_within_it_and_none_where_all_are_slower() -> None:
    latency = {0.9: 85.0, 0.5: 40.0, 0.4: 28.0}
    assert [widest(latency, budget) for budget in (20, 40, 90)] == [None, 0.5, 0.9]


def test_what_was_not_polished_has_no_place_among_what_was() -> None:
    ours = [answer("autotailor", budget, [True, True]) for budget in (30, 40)]
    theirs = [answer("legodnn", 30, [True, False]), replace(answer("legodnn", 40, [True]), polished_right=UNKNOWN)]
    theirs[1] = replace(theirs[1], inherited_right=np.array([True, False]))
    rows = table([*ours, *theirs], np.arange(2), ("autotailor", "legodnn"))
    found = {(each["weights"], each["budget"]): each["best rival"] for each in standings(rows)}
    wanted = {("inherited", 30): "legodnn", ("inherited", 40): "legodnn", ("polished", 30): "legodnn"}
    assert found == wanted | {("polished", 40): "none"}


def test_the_least_cost_is_that_of_the_cheapest_subnet(resnet_net: SuperNet) -> None:
    every = resnet_net.macs().predict(np.array(list(np.ndindex(*(len(v.choices) for v in resnet_net.space)))))
    assert least(resnet_net.macs(), resnet_net.largest()) == pytest.approx(every.min())


def test_a_subnet_that_serves_two_budgets_is_trained_once() -> None:
    assert own_images([answer("a", 50, [True]), answer("a", 60, [True]), answer("b", 60, [True])]) == 200


def test_comments_and_empty_lines_are_no_lines_of_configuration() -> None:
    assert lines("# a comment\n\nkey: 1   # said\n  inner: 2\n") == 2


def test_a_figure_has_one_line_for_each_method_beside_the_given_network() -> None:
    answers = [answer(method, budget, [True, False]) for method in ("autotailor", "legodnn") for budget in (30, 50)]
    cost = cost_of_device({"name": "macs", "cost": "macs"})
    figure = fronts("letters", table(answers, np.arange(2), ("autotailor", "legodnn")), 93.0, cost)
    assert figure.axes[0].get_xlabel() == "MACs (% of the given network)"
    for axes in figure.axes:
        assert [line.get_label() for line in axes.lines] == ["the given network", "autotailor", "legodnn"]
        assert axes.lines[1].get_xdata().tolist() == [30, 50]


def test_costs_are_drawn_with_ours_on_top() -> None:
    rows = pd.DataFrame({"method": ["autotailor", "legodnn"], "images": [1, 2], "operators": [3, 4], "lines": [1, 9]})
    figure = costs("letters", rows)
    assert [bar.get_width() for bar in figure.axes[0].patches] == [2, 1]


def test_pictures_of_a_subnet_that_is_chosen_without_exits_leave_at_its_end() -> None:
    seen = Answers(np.array([[0.9], [0.1]]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert right_where_left({}, ["stage2"], seen).tolist() == [False, True]
    assert right_where_left({"stage2": 0.5}, ["stage2"], seen).tolist() == [True, True]
