from __future__ import annotations

from pathlib import Path

import pandas as pd

import fleets
from autotailor.fleet.page.write import TABLES, number, tables, write_page


def test_the_page_needs_no_other_file_and_stands_beside_its_tables(tmp_path: Path) -> None:
    fleet, _ = fleets.fleet(tmp_path / "results")
    path = tmp_path / "results" / "fleet" / "all" / "index.html"
    write_page(fleet, path)
    text = path.read_text()
    assert "http" not in text
    for name in (*fleets.MODELS, *fleets.DEVICES):
        assert name in text
    assert text.count("★") == len(fleets.DEVICES) * len(fleets.MODELS) * len(fleets.SHARES)
    for name, table in tables(fleet).items():
        assert name in TABLES
        written = pd.read_csv(path.parent / f"{name}.csv")
        if name == "effort":
            written = written.fillna({"device": ""})
        pd.testing.assert_frame_equal(written, table, check_dtype=False)


def test_numbers_are_short_and_missing_ones_are_a_dash() -> None:
    assert [number(value) for value in (0.0371478, 98.348, 1234.5, float("nan"), None)] == [
        "0.0371",
        "98.3",
        "1234",
        "–",
        "–",
    ]
