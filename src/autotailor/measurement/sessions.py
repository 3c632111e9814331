"""What the sessions of a run measure of whole SubNets, for ``confirmed.csv`` and ``summary.csv``."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from autotailor.profiling import mean_of_rounds
from autotailor.profiling.networks.timing import Measurement

SHARE = ("share_measured", "share_standard_error")
"""Columns of a latency as a share of the largest SubNet's in the same rounds; tables of earlier versions have none."""


@dataclass(frozen=True)
class Timed:
    """The latency of a SubNet in one session.

    Attributes:
        latency_ms: milliseconds, scaled by the anchor.
        standard_error: within the session, ms.
        share: of the largest SubNet's latency in the same rounds; NaN where that was not measured.
        share_error: standard error of the share within the session.
    """

    latency_ms: float
    standard_error: float
    share: float = math.nan
    share_error: float = math.nan


def timed(rounds: Sequence[Sequence[Measurement]], whole: str) -> dict[str, Timed]:
    """Name of each network to its latency, and to its share of the latency that the largest SubNet has in each round.

    Args:
        rounds: two or more, as ``autotailor.profiling.measure_rounds`` returns them.
        whole: name of the largest SubNet; where no network has it, shares are not known.
    """
    times = {each.key: Timed(each.latency_ms, each.standard_error) for each in mean_of_rounds(rounds)}
    if whole not in times:
        return times
    latencies = [{each.key: each.latency_ms for each in measured} for measured in rounds]
    shares = {name: [measured[name] / measured[whole] for measured in latencies] for name in times}
    return {
        name: Timed(
            each.latency_ms,
            each.standard_error,
            statistics.mean(shares[name]),
            statistics.stdev(shares[name]) / math.sqrt(len(rounds)),
        )
        for name, each in times.items()
    }


def read_sessions(paths: Sequence[Path]) -> tuple[Mapping[str, Timed], ...]:
    """Id of each SubNet to its latency, for each table of a session; nothing where the LUT is imported."""
    return tuple(_session(pd.read_csv(path, dtype={"subnet": str})) for path in paths)


def of_each_subnet(sessions: Sequence[Mapping[str, Timed]]) -> dict[str, list[Timed]]:
    """Id of each SubNet to its latencies in all sessions."""
    names = dict.fromkeys(name for session in sessions for name in session)
    return {name: [session[name] for session in sessions if name in session] for name in names}


def _session(table: pd.DataFrame) -> dict[str, Timed]:
    """Several files of one SubNet count once; the original network has no id."""
    rows = table.dropna(subset=["subnet", "latency_ms_measured"]).drop_duplicates("subnet")
    named = ("latency_ms_measured", "latency_ms_standard_error", *SHARE)
    columns = (rows[name].astype(float) if name in rows else [math.nan] * len(rows) for name in named)
    return {name: Timed(*values) for name, *values in zip(rows["subnet"], *columns, strict=True)}
