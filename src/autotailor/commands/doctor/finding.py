"""The findings of a device's checks, and the table of them that ``doctor`` prints."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autotailor.commands.terminal import terminal


class Verdict(Enum):
    """How a check ended."""

    GOOD = "ok"
    WARNING = "warning"
    FAILED = "failed"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's table.

    Attributes:
        check: name of the check.
        verdict: how the check ended; UNAVAILABLE where the device gives no information.
        detail: what the check found.
        remedy: what the user can do; empty where nothing needs to be done.
    """

    check: str
    verdict: Verdict
    detail: str
    remedy: str = ""

    def to_dict(self) -> dict[str, str]:
        """Plain data for JSON, under the headings of the table."""
        return {"check": self.check, "verdict": self.verdict.value, "found": self.detail, "remedy": self.remedy}


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
        listed = list(findings)
    table = Table(title=f"Device {device}", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("check", "verdict", "found", "remedy"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("check", "verdict"))
    for finding in listed:
        verdict = f"[{STYLES[finding.verdict]}]{finding.verdict.value}[/]"
        table.add_row(finding.check, verdict, escape(finding.detail), escape(finding.remedy))
    console.print(table)
    return listed
