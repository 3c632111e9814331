"""The table of findings that ``doctor`` prints."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autotailor.commands.doctor.finding import Finding, Verdict
from autotailor.commands.terminal import terminal

STYLES = {
    Verdict.GOOD: "green",
    Verdict.WARNING: "yellow",
    Verdict.FAILED: "bold red",
    Verdict.UNAVAILABLE: "dim",
}


def print_findings(device: str, findings: Iterable[Finding], console: Console | None = None) -> list[Finding]:
    """Prints one line for each check, and a status line while checks run.

    Args:
        device: name of the device.
        findings: of the checks; reading them runs the checks.
        console: where to print; standard output when None.

    Returns:
        All findings.
    """
    console = console or terminal()
    with console.status(f"examining {device}"):
        found = list(findings)
    table = Table(title=f"Device {device}", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("check", "verdict", "found", "remedy"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("check", "verdict"))
    for finding in found:
        verdict = f"[{STYLES[finding.verdict]}]{finding.verdict.value}[/]"
        table.add_row(finding.check, verdict, escape(finding.detail), escape(finding.remedy))
    console.print(table)
    return found
