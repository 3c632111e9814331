"""``runtime.html``: what a demonstration has shown, as one file that needs no other files and no network."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from autotailor.artifacts import write_text
from autotailor.reporting.charts.marks import Drawing, data
from autotailor.reporting.page import chart
from autotailor.reporting.page.palette import color, style_variables
from autotailor.serving.demo.trace import Sample, Stretch, by_load, stretches, summed

STRETCHES = 160
"""Stretches into which the trace is divided for the charts."""
HEIGHTS = {"latency": 260, "member": 190}


def write_page(samples: Sequence[Sample], status: Mapping[str, Any], core: int | None, path: Path) -> None:
    """Writes the page.

    Args:
        samples: the trace, with at least one inference.
        status: of the service afterwards.
        core: on which pool and burdens ran; None where they were not pinned.
        path: of the page.
    """
    write_text(path, render(samples, status, core))


def render(samples: Sequence[Sample], status: Mapping[str, Any], core: int | None) -> str:
    """The page's HTML."""
    environment = Environment(
        loader=ChoiceLoader(
            [
                PackageLoader("autotailor.commands.runtime", "templates"),
                PackageLoader("autotailor.reporting", "templates"),
            ]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    total = samples[-1].seconds
    parts = stretches(samples, total / STRETCHES)
    names = [member["name"] for member in status["members"]]
    best = max(member["accuracy"] for member in status["members"])
    return environment.get_template("runtime.html").render(
        status=status,
        core=core,
        whole=summed(samples),
        phases=by_load(samples),
        deadline=samples[-1].deadline_ms,
        total=total,
        best=best,
        counts=status["counters"],
        latency=chart.embedded("latency", (_latency(parts, total, samples[-1].deadline_ms),), "Latency and deadline"),
        members=chart.embedded("member", (_members(parts, total, names),), "Which member ran"),
        variables=Markup(style_variables()),
        library=chart.library(),
    )


def _time(total: float) -> alt.X:
    return alt.X("seconds:Q", title="seconds", scale=alt.Scale(domain=[0, total], nice=False))


def _shades(parts: Sequence[Stretch], total: float) -> Drawing:
    """Behind each phase a shade, the darker the more competes."""
    most = max((part.burdens for part in parts), default=0) or 1
    begins = [part for before, part in zip([None, *parts], parts, strict=False)
              if before is None or before.burdens != part.burdens]  # fmt: skip
    ends = [*(part.seconds for part in begins[1:]), total]
    rows = [
        {"seconds": part.seconds, "end": end, "shade": 0.22 * part.burdens / most, "hint": f"{part.burdens} competing"}
        for part, end in zip(begins, ends, strict=True)
    ]
    return (
        alt.Chart(data(rows))
        .mark_rect(color=color("grey"))
        .encode(x=_time(total), x2="end", opacity=alt.Opacity("shade:Q", scale=None, legend=None), tooltip="hint:N")
    )


def _latency(parts: Sequence[Stretch], total: float, deadline_ms: float) -> chart.Part:
    """Median and 95 % quantile of each stretch over time, with the deadline."""
    rows = []
    for part in parts:
        late = f"{part.late:.0%} of {part.inferences} late"
        for series, value in (("median", part.median_ms), ("95 % within", part.p95_ms)):
            hint = f"{part.seconds:.1f} s: {series} {value:.3g} ms\n{late}, {part.burdens} competing"
            rows.append({"seconds": part.seconds, "latency": value, "series": series, "hint": hint})
    y = alt.Y("latency:Q", title="latency (ms)", scale=alt.Scale(type="log", nice=False, padding=8))
    scale = alt.Scale(domain=["median", "95 % within"], range=[color("blue"), color("orange")])
    lines = (
        alt.Chart(data(rows))
        .mark_line(strokeWidth=1.8, interpolate="monotone", point=alt.OverlayMarkDef(size=14, opacity=0.9))
        .encode(x=_time(total), y=y, color=alt.Color("series:N", scale=scale), tooltip="hint:N")
    )
    limit = {"latency": deadline_ms, "hint": f"deadline {deadline_ms:.3g} ms"}
    rule = (
        alt.Chart(data([limit]))
        .mark_rule(strokeWidth=2, strokeDash=[6, 4], color=color("ink"))
        .encode(y=y, tooltip="hint:N")
    )
    return chart.Part(alt.layer(_shades(parts, total), lines, rule).properties(height=HEIGHTS["latency"]))


def _members(parts: Sequence[Stretch], total: float, names: Sequence[str]) -> chart.Part:
    """The member that ran most often in each stretch."""
    ends = [*(part.seconds for part in parts[1:]), total]
    rows = [
        {
            "seconds": part.seconds,
            "end": end,
            "member": part.member,
            "hint": f"{part.seconds:.1f} s: {part.member}\nmean accuracy {part.accuracy:.2f} %",
        }
        for part, end in zip(parts, ends, strict=True)
    ]
    y = alt.Y("member:N", title=None, sort=list(reversed(names)), scale=alt.Scale(domain=list(reversed(names))))
    bars = (
        alt.Chart(data(rows))
        .mark_bar(color=color("green"), height=9)
        .encode(x=_time(total), x2="end", y=y, tooltip="hint:N")
    )
    return chart.Part(alt.layer(_shades(parts, total), bars).properties(height=max(HEIGHTS["member"], 15 * len(names))))
