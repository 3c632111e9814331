"""The search's own picture: what each search found."""

from __future__ import annotations

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from autotailor.artifacts import atomic
from autotailor.search.optimizer import SearchResult


def plot(result: SearchResult, path: Path) -> None:
    """Draws the front, predicted accuracy over predicted latency, as PNG or SVG by the file's ending."""
    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    if result.exact is not None:
        exact = result.exact.front
        label = "exact front (variable elimination)"
        axes.step(exact.latency, exact.accuracy, where="post", color="#94a3b8", linewidth=1.2, label=label)
    genetic, front = result.genetic, result.front
    axes.plot(genetic.latency, genetic.accuracy, "o", ms=3, color="#d97706", label="genetic search")
    axes.plot(front.latency, front.accuracy, "o", ms=5, mfc="none", color="#2563eb", label="front")
    axes.set(xlabel="latency predicted (ms)", ylabel="accuracy predicted (%)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e2e8f0", linewidth=0.7)
    axes.legend(frameon=False, loc="lower right")
    with atomic(path) as temporary:
        figure.savefig(temporary, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
