"""Every number that the report shows is in an artifact."""

import dataclasses
import html.parser
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from autotailor.reporting import (
    FIGURES,
    ReportError,
    ReportInputs,
    accuracy_intervals,
    answer,
    build_report,
    write_figure,
)
from autotailor.reporting.charts.front import front
from autotailor.reporting.charts.sensitivity import sensitivity
from autotailor.reporting.derived_columns import DERIVATIONS
from autotailor.reporting.html import render
from autotailor.reporting.inputs import KEYS, Tables
from autotailor.reporting.inputs import OPTIONAL as COLUMNS_OF_BEFORE

VOID = {"meta", "img", "br", "link", "hr", "input"}


@dataclasses.dataclass
class Mark:
    """One marked piece of text."""

    data: dict[str, str]
    text: str = ""


class Page(html.parser.HTMLParser):
    """Collects marked texts, and all the text that is not marked."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.stack: list[tuple[str, Mark | None]] = []
        self.marks: list[Mark] = []
        self.rest: list[str] = []
        self.addresses: list[str] = []
        self.charts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attributes if name in ("src", "href")]
        self.charts += [value or "" for name, value in attributes if tag == "script" and name == "data-chart"]
        if tag in VOID:
            return
        data = {name[5:]: value or "" for name, value in attributes if name.startswith("data-")}
        mark = Mark(data) if data else None
        if mark:
            self.marks.append(mark)
        self.stack.append((tag, mark))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        marks = [mark for _, mark in self.stack if mark]
        if marks:
            marks[-1].text += data
        elif not {"style", "title", "code", "script", "svg"} & {tag for tag, _ in self.stack}:
            self.rest.append(data)


def as_shown(value: object, spec: str) -> str:
    """The test's own formatting."""
    return str(value) if spec == "s" else format(value, spec).replace("-", "−")


class Artifacts:
    """Reads back what marks name, each file once."""

    def __init__(self, inputs: ReportInputs, folder: Path) -> None:
        self.inputs, self.tables, self.folder = inputs, Tables(inputs), folder
        self.read: dict[str, dict[str, list[dict[Hashable, Any]]]] = {}

    def expected(self, mark: Mark) -> str:
        """What a mark must say."""
        data = mark.data
        if "answer" in data:
            found = answer(self.tables.needed("summary"), self.inputs.device, self.tables.score, self.tables.cost)
            said = {"sentence": found.sentence} | {f"caveat {i}": text for i, text in enumerate(found.caveats)}
            return said[data["answer"]].replace("`", "")
        if "derivation" in data:
            derivation = DERIVATIONS[data["derivation"]]
            assert data["source"].split() == [getattr(self.inputs, name).name for name in derivation.inputs]
            return as_shown(derivation.compute(self.tables, data.get("row", "")), data["format"])
        if "path" in data:
            value = json.loads((self.folder / data["source"]).read_text())
            for key in data["path"].split("/"):
                value = value[key]
            return as_shown(value, data["format"])
        (row,) = self.rows(data["source"])[data["row"]]
        return as_shown(row[data["column"]], data["format"])

    def rows(self, name: str) -> dict[str, list[dict[Hashable, Any]]]:
        """The rows of a table under the columns that name each of them."""
        if name not in self.read:
            keys = KEYS[Path(name).stem]
            frame = pd.read_csv(self.folder / name, dtype=dict.fromkeys(keys, str))
            names = frame[[key for key in keys if key in frame]].fillna("").agg("|".join, axis=1)
            self.read[name] = defaultdict(list)
            for row_name, row in zip(names, frame.to_dict("records"), strict=True):
                self.read[name][row_name].append(row)
        return self.read[name]

    def check(self, page: Page) -> int:
        """Checks every mark that names an artifact; answers how many there were."""
        traced = [mark for mark in page.marks if {"source", "answer"} & set(mark.data)]
        for mark in traced:
            assert mark.text == self.expected(mark), mark.data
        return len(traced)


@pytest.fixture(name="built", scope="module")
def built_fixture(tmp_path_factory: pytest.TempPathFactory, artifacts: Callable[..., ReportInputs]) -> ReportInputs:
    """All artifacts, and ``report.html`` beside them."""
    inputs = artifacts(tmp_path_factory.mktemp("report"))
    build_report(inputs, inputs.summary.parent / "report.html")
    return inputs


@pytest.fixture(name="text")
def text_fixture(built: ReportInputs) -> str:
    """The report that is beside ``built``."""
    return (built.summary.parent / "report.html").read_text()


def test_every_number_is_in_an_artifact(built: ReportInputs, text: str) -> None:
    page = Page(text)
    assert Artifacts(built, built.summary.parent).check(page) > 400
    untraced = [text.strip() for text in page.rest if re.search(r"\d", text)]
    assert not untraced


def test_every_source_is_shown(built: ReportInputs, text: str) -> None:
    sources = {name for mark in Page(text).marks for name in mark.data.get("source", "").split()}
    paths = [value for value in dataclasses.asdict(built).values() if isinstance(value, Path)]
    assert sources == {path.name for path in paths}


def test_it_opens_by_itself(text: str) -> None:
    page = Page(text)
    assert page.charts == [
        *("chart-front-0", "chart-contributors-0", "chart-contributors-1", "chart-latency-0", "chart-latency-1"),
        *("chart-accuracy-0", "chart-sensitivity-0"),
    ]
    assert all(address.startswith("#") for address in page.addresses)
    assert not re.search(r"<script[^>]* src=", text)
    assert "@import" not in text
    assert text.count("window.vega={") == 1, "Vega is there once for all charts"


def test_it_is_small_enough_to_mail(built: ReportInputs, text: str) -> None:
    """A run of the default size; the long tables of a run with forty budgets would add another third."""
    assert len(text.encode()) < 1_400_000


def test_the_same_artifacts_give_the_same_bytes(built: ReportInputs, text: str, tmp_path: Path) -> None:
    build_report(built, tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text() == text


def test_only_what_it_cannot_do_without(bare_inputs: ReportInputs, tmp_path: Path) -> None:
    build_report(bare_inputs, tmp_path / "report.html")
    page = Page((tmp_path / "report.html").read_text())
    assert page.charts == ["chart-front-0"]
    text = " ".join(page.rest)
    for said in (
        "make compare adds them",
        "no validation of the latency predictor",
        "no sensitivities",
        "no LUT",
    ):
        assert said in text


ABSENT_BEFORE = {
    **COLUMNS_OF_BEFORE,
    "summary": (*COLUMNS_OF_BEFORE["summary"], "budget_met"),
    "contributors": ("stage",),
}
OPTIONAL = [f.name for f in dataclasses.fields(ReportInputs) if f.default is None]


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts are said and not drawn, which other tests do."""
    monkeypatch.setattr("autotailor.reporting.page.chart.configured", lambda specification, room: {})
    monkeypatch.setattr("autotailor.reporting.page.chart.drawn", lambda specification: "")
    monkeypatch.setattr("autotailor.reporting.page.chart.vl_convert.vegalite_to_vega", lambda specification: {})


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", OPTIONAL)
def test_without_one_input(name: str, inputs: ReportInputs, tmp_path: Path) -> None:
    less = dataclasses.replace(inputs, **{name: None})
    build_report(less, tmp_path / "report.html")
    assert Artifacts(less, tmp_path).check(Page((tmp_path / "report.html").read_text())) > 200


@pytest.mark.parametrize("name", [*KEYS])
def test_a_table_without_its_columns(name: str, inputs: ReportInputs, tmp_path: Path) -> None:
    getattr(inputs, name).write_text("nonsense\n1\n")
    with pytest.raises(ReportError, match=rf"{name}.csv: column '\w+' is missing, expected .*; run its rule again"):
        build_report(inputs, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


BEFORE = [(table, column) for table, columns in ABSENT_BEFORE.items() for column in columns]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("table", "column"), BEFORE, ids=[column for _, column in BEFORE])
def test_a_run_of_before_lacks_a_column(table: str, column: str, inputs: ReportInputs, tmp_path: Path) -> None:
    path: Path = getattr(inputs, table)
    pd.read_csv(path).drop(columns=column).to_csv(path, index=False)
    build_report(inputs, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert Artifacts(inputs, tmp_path).check(Page(text)) > 400
    assert not re.search(rf'data-source="{path.name}" data-row="[^"]*" data-column="{column}"', text)


def test_a_broken_document(inputs: ReportInputs, tmp_path: Path) -> None:
    assert inputs.yardstick is not None
    inputs.yardstick.write_text("{")
    with pytest.raises(ReportError, match="expected a JSON artifact"):
        build_report(inputs, tmp_path / "report.html")


@pytest.mark.parametrize(("found", "is_thinned"), [(133, True), (60, False)])
def test_a_front_that_is_shorter_than_what_the_searches_found_is_told(
    found: int, is_thinned: bool, inputs: ReportInputs, tmp_path: Path
) -> None:
    assert inputs.yardstick is not None
    assert len(pd.read_csv(inputs.pareto)) == 60
    inputs.yardstick.write_text(json.dumps(json.loads(inputs.yardstick.read_text()) | {"exact_subnets": found}))
    build_report(inputs, tmp_path / "report.html")
    text = " ".join(Page((tmp_path / "report.html").read_text()).rest)
    assert ("spread evenly over the range of latency" in text) == is_thinned


def test_nothing_measured_yet(inputs: ReportInputs, tmp_path: Path) -> None:
    summary = pd.read_csv(inputs.summary).query("name != 'original'")
    measured = [c for c in summary.columns if "measured" in c or "standard_error" in c]
    summary[measured] = math.nan
    summary.to_csv(inputs.summary, index=False)
    build_report(inputs, tmp_path / "report.html")
    assert "nan" not in " ".join(m.text for m in Page((tmp_path / "report.html").read_text()).marks)


@pytest.mark.usefixtures("undrawn")
def test_names_are_escaped(inputs: ReportInputs, tmp_path: Path) -> None:
    bad = "</script><script>alert()</script>"
    summary = pd.read_csv(inputs.summary).replace({"name": {"budget_03": bad}})
    summary.to_csv(inputs.summary, index=False)
    build_report(dataclasses.replace(inputs, model="<script>alert()</script>"), tmp_path / "report.html")
    assert "<script>alert" not in (tmp_path / "report.html").read_text()


def test_pictures_stand_side_by_side_where_there_are_some(inputs: ReportInputs, tmp_path: Path) -> None:
    url, path = "data:image/jpeg;base64,AAAA", tmp_path / "pictures.json"
    rows = [{"labels": url, "original": url, "<b>": url}] * 2
    path.write_text(json.dumps({"classes": {"<i>": "#ff0000"}, "pictures": rows}))
    build_report(dataclasses.replace(inputs, pictures=path), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert text.count(f'<img src="{url}"') == 6
    assert 'alt="picture 2: &lt;b&gt;"' in text
    assert "<b>" not in text
    path.write_text(json.dumps({"classes": {}, "pictures": []}))
    build_report(dataclasses.replace(inputs, pictures=path), tmp_path / "report.html")
    assert "<img" not in (tmp_path / "report.html").read_text()


def test_figures_for_snakemake(inputs: ReportInputs, bare_inputs: ReportInputs, tmp_path: Path) -> None:
    for name in FIGURES:
        for number, tables in enumerate((inputs, bare_inputs)):
            write_figure(name, tables, path := tmp_path / f"{name}{number}.svg")
            assert path.read_text().startswith("<svg")
            assert "var(" not in path.read_text()


def test_a_run_without_the_device(inputs: ReportInputs, tmp_path: Path) -> None:
    assert inputs.validation is not None
    inputs.validation.write_text(inputs.validation.read_text().splitlines()[0] + "\n")
    write_figure("latency", inputs, tmp_path / "latency.svg")
    assert "not measured" in (tmp_path / "latency.svg").read_text()
    build_report(inputs, tmp_path / "report.html")
    assert "There is no validation of the latency predictor." in (tmp_path / "report.html").read_text()


def test_a_run_without_any_device_tells_macs_and_no_latency(counted_inputs: ReportInputs, tmp_path: Path) -> None:
    build_report(counted_inputs, tmp_path / "report.html")
    page = Page((tmp_path / "report.html").read_text())
    assert Artifacts(counted_inputs, tmp_path).check(page) > 200
    text = " ".join(page.rest)
    assert not re.search(r"\bms\b|latenc|faster|speed|memory|energy|LUT", text)
    for said in (
        "MACs (M)",
        "fewer MACs: the most accurate SubNet at half the MACs",
        "at any budget of MACs",
        "at this MACs",
    ):
        assert said in text
    assert page.charts == ["chart-front-0", "chart-accuracy-0", "chart-sensitivity-0"]
    write_figure("front", counted_inputs, tmp_path / "front.svg")


def test_divergences_take_the_place_of_drops_where_they_judge(inputs: ReportInputs) -> None:
    def drawn() -> list[float]:
        (part,) = sensitivity(Tables(inputs))
        (points,) = part.chart.to_dict(validate=False)["datasets"].values()
        return [row["x"] for row in points]

    said, table = "how far its answers are from the network", pd.read_csv(inputs.sensitivity, dtype={"choice": str})
    assert drawn() == pytest.approx(table["divergence"].tolist(), rel=1e-4)
    assert said in render(inputs)
    table.assign(divergence=np.nan, divergence_standard_error=np.nan).to_csv(inputs.sensitivity, index=False)
    assert drawn() == pytest.approx(table["accuracy_drop"].tolist(), rel=1e-4)
    assert said not in render(inputs)


def test_the_figure_of_a_run_with_somebody_elses_table_shows_measured_accuracies(inputs: ReportInputs) -> None:
    summary = pd.read_csv(inputs.summary)
    summary["latency_ms_expected"] = summary["latency_ms_expected"].fillna(2.1)
    of_tables = ("latency_ms_predicted", "latency_ms_expected")
    summary[[name for name in summary if name.startswith("latency_ms") and name not in of_tables]] = math.nan
    summary["budget_met"] = math.nan
    summary.to_csv(inputs.summary, index=False)
    (part,) = front(Tables(inputs))
    points = [row for rows in part.chart.to_dict(validate=False)["datasets"].values() for row in rows]
    named = {row["id"]: (row["x"], row["y"]) for row in points if row.get("series") == "SubNet, measured"}
    for name in ("largest", "budget_01", "budget_02", "budget_03"):
        row = summary.set_index("name").loc[name]
        assert named[name] == (row["latency_ms_expected"], row["accuracy_measured"])


def test_budgets_that_have_one_subnet_share_a_name_in_the_figure(inputs: ReportInputs) -> None:
    summary = pd.read_csv(inputs.summary).set_index("name")
    summary.loc["budget_03"] = summary.loc["budget_02"]
    summary.to_csv(inputs.summary)
    (part,) = front(Tables(inputs))
    drawn = part.chart.to_dict(validate=False)["datasets"].values()
    assert ["largest", "budget_01", "budget_02, budget_03"] in [[row.get("id") for row in rows] for rows in drawn]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_broken_promise_of_the_latency_predictor_is_told(share: float, inputs: ReportInputs, tmp_path: Path) -> None:
    assert inputs.configuration is not None
    configuration = json.loads(inputs.configuration.read_text())
    configuration["validate"]["promise"] = {"error": 0.02, "share": share}
    inputs.configuration.write_text(json.dumps(configuration))
    build_report(inputs, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert ("out of its promised range" in text) is (share == 1.0)
    assert ("The machine may be the cause: the anchor is 30.0% slower" in text) is (share == 1.0)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("found", [82.9, 67.6])
def test_a_broken_promise_of_the_accuracy_of_exports_is_told_with_a_remedy(
    found: float, inputs: ReportInputs, tmp_path: Path
) -> None:
    """As in a run that promised 82.4 % and found 67.6 %."""
    summary = pd.read_csv(inputs.summary)
    row = summary["name"] == "budget_01"
    summary.loc[row, ["accuracy_predicted", "accuracy_predicted_standard_error", "accuracy_inherited"]] = (
        82.4,
        1.5,
        found,
    )
    summary.loc[summary["name"] == "budget_02", "accuracy_inherited"] = 91.0
    summary.to_csv(inputs.summary, index=False)
    build_report(inputs, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert ("is not what was promised" in text) is (found == 67.6)
    assert ("Raise sensitivity.evaluations and search.evaluations" in text) is (found == 67.6)
    assert text.count(" was predicted at ") == (found == 67.6)


@pytest.mark.parametrize(
    ("off", "names"),
    [
        ([0, 0, 0], []),
        ([2.5, 0, 0], []),
        ([2.5, -2.5, 0], ["a", "b"]),
        ([0, 3.5, 0], ["b"]),
        ([-2.5, 3.5, 1], ["a", "b"]),
    ],
    ids=str,
)
def test_one_export_in_ten_may_be_missed_and_none_by_far(off: list[float], names: list[str]) -> None:
    table = pd.DataFrame(
        {"accuracy_predicted": 80.0, "accuracy_inherited": 80.0 + 5 * np.array(off)}, index=list("abc")
    )
    table["accuracy_predicted_standard_error"], table["accuracy_standard_error"] = 3.0, 4.0
    assert accuracy_intervals.broken(table) == names


@pytest.mark.usefixtures("undrawn")
def test_a_run_of_before_does_not_tell_why_its_promise_is_broken(inputs: ReportInputs, tmp_path: Path) -> None:
    assert inputs.configuration is not None
    assert inputs.validation is not None
    configuration = json.loads(inputs.configuration.read_text())
    configuration["validate"]["promise"] = {"error": 0.001, "share": 1.0}
    inputs.configuration.write_text(json.dumps(configuration))
    pd.read_csv(inputs.validation).drop(columns=["anchor_drift", "follows"]).to_csv(inputs.validation, index=False)
    build_report(inputs, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "out of its promised range" in text
    assert "is the cause" not in text
    assert "may be the cause" not in text


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    "kept", [{}, {"kept": {"finetune": ["autotailor.finetuning.training.loop"]}}], ids=["none", "one"]
)
def test_rules_that_were_kept_although_their_code_has_changed_are_told(
    kept: dict[str, Any], inputs: ReportInputs, tmp_path: Path
) -> None:
    assert inputs.configuration is not None
    configuration = json.loads(inputs.configuration.read_text())
    inputs.configuration.write_text(json.dumps(configuration | kept))
    build_report(inputs, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert ("Some rules were kept" in text) is bool(kept)
    assert ("autotailor.finetuning.training.loop" in text) is bool(kept)
