"""Where pictures have no labels, a person reads of agreement, and nowhere of accuracy."""

import html
import json
import re
from dataclasses import replace

import pytest

from autotailor.reporting import FIGURES, ReportInputs
from autotailor.reporting.html import render
from autotailor.reporting.inputs import Tables
from autotailor.reporting.page.chart import embedded


@pytest.fixture
def unlabelled(inputs: ReportInputs) -> ReportInputs:
    assert inputs.configuration is not None
    configuration = json.loads(inputs.configuration.read_text())
    inputs.configuration.write_text(json.dumps({**configuration, "data": {"labels": False}}))
    return inputs


def read(page: str) -> str:
    """What a person reads: texts, tooltips and descriptions of figures, but no names of files and columns."""
    page = re.sub(r"<style>.*?</style>|<code>.*?</code>|<script.*?</script>", "", page, flags=re.DOTALL)
    said = re.findall(r'(?:title|aria-label)="([^"]*)"', page)
    return html.unescape(" ".join([*said, re.sub(r"<[^>]*>", " ", page)])).lower()


def test_the_report_follows_the_data(unlabelled: ReportInputs) -> None:
    text = read(render(unlabelled))
    assert "accura" not in text
    assert "agreement is the share of the pictures for which a network gives the same answer" in text
    labelled = read(render(replace(unlabelled, configuration=None)))
    assert "agreement" not in labelled
    assert text.count("agreement") - labelled.count("accuracy") == 1  # the sentence that explains the word
    assert text.count("most faithful") == labelled.count("most accurate")


@pytest.mark.parametrize("name", FIGURES)
def test_figures_follow_the_data(unlabelled: ReportInputs, name: str) -> None:
    labelled, other = (
        str(embedded("it", FIGURES[name][1](Tables(inputs)), "")).lower()
        for inputs in (replace(unlabelled, configuration=None), unlabelled)
    )
    assert "accura" not in other
    assert other.count("agreement") == labelled.count("accuracy")
