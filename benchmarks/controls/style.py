"""The style of the benchmarks' figures."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from autotailor.artifacts import atomic

BLUE = "#2563eb"
INK, GREY = "#1e293b", "#64748b"
SERIES = (BLUE, "#f59e0b", "#14b8a6", "#8b5cf6", "#f43f5e", "#84cc16", "#0ea5e9", "#a16207", "#be185d", "#475569")

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "grid.color": "#e2e8f0",
    "grid.linewidth": 0.8,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.fonttype": "path",
    "svg.hashsalt": "autotailor",
}


@contextmanager
def house_style() -> Iterator[None]:
    """Inside this context, figures have this style."""
    with mpl.rc_context(rc=STYLE):
        yield


def canvas(width: float, height: float) -> Figure:
    """An empty figure of a size in inches, without a window."""
    return Figure(figsize=(width, height), layout="constrained")


def svg(figure: Figure) -> bytes:
    """The figure as SVG; the same data give the same bytes."""
    stream = io.BytesIO()
    with house_style():
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def write_svg(figure: Figure, path: Path) -> None:
    """Writes an SVG file; an interrupted write leaves no file."""
    content = svg(figure)
    with atomic(path) as temporary:
        temporary.write_bytes(content)
