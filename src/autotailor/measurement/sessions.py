"""What the sessions of a run have measured of whole SubNets: ``confirmed.csv`` and ``summary.csv``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd


@dataclass(frozen=True)
class Timed:
    """The latency of a SubNet in one session.

    Attributes:
        latency_ms: milliseconds, scaled by the anchor.
        standard_error: within the session, ms.
    """

    latency_ms: float
    standard_error: float


def read_sessions(paths: Sequence[Path]) -> tuple[Mapping[str, Timed], ...]:
    """Id of each SubNet to its latency, for each table of a session; nothing where the LUT is imported."""
    return tuple(_session(pd.read_csv(path, dtype={"subnet": str})) for path in paths)


def of_each_subnet(found: Sequence[Mapping[str, Timed]]) -> dict[str, list[Timed]]:
    """Id of each SubNet to its latencies in all sessions."""
    names = dict.fromkeys(name for session in found for name in session)
    return {name: [session[name] for session in found if name in session] for name in names}


def _session(table: pd.DataFrame) -> dict[str, Timed]:
    """Several files of one SubNet count once; the original network has no id."""
    rows = table.dropna(subset=["subnet", "latency_ms_measured"]).drop_duplicates("subnet")
    columns = (rows["latency_ms_measured"].astype(float), rows["latency_ms_standard_error"].astype(float))
    return {name: Timed(ms, error) for name, ms, error in zip(rows["subnet"], *columns, strict=True)}
