"""A run of the tests ends with each reason for a skip and the command that mends it.

A test that skips says ``WHAT is missing: REMEDY``: the summary prints what stands before the first colon, how many
tests it costs, and the remedy behind it.
"""

from collections import Counter
from typing import Any

import pytest

PREFIX = "Skipped: "


def reasons(reports: list[pytest.TestReport]) -> Counter[str]:
    """The reasons for skips, with the number of tests that each costs."""
    texts = (report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr) for report in reports)
    return Counter(text.removeprefix(PREFIX) for text in texts)


def lines(counts: Counter[str]) -> list[str]:
    """One line for each reason, the most expensive first."""
    found = []
    for reason, count in counts.most_common():
        what, colon, remedy = reason.partition(": ")
        tests = f"{count} test{'s' * (count != 1)}"
        found.append(f"{tests}: {what}; mended by: {remedy}" if colon else f"{tests}: {what}; nothing mends that here")
    return found


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints the lines behind pytest's own summary."""
    if skipped := terminalreporter.stats.get("skipped"):
        terminalreporter.section("why tests were skipped")
        for line in lines(reasons(skipped)):
            terminalreporter.line(line)
