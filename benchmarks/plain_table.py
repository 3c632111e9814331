"""A table of a benchmark for the terminal."""

from __future__ import annotations

import pandas as pd
from rich.table import Table


def plain_table(frame: pd.DataFrame, title: str) -> Table:
    """Every column of a frame; numbers with a fraction have two digits behind the point."""
    table = Table(title=title)
    for name in frame.columns:
        table.add_column(name)
    for row in frame.itertuples(index=False):
        table.add_row(*(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row))
    return table
