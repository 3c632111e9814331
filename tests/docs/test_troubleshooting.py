"""Every message that the troubleshooting page quotes is still one that the package or the workflow can say."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
GAP = "…"


def texts_of(path: Path) -> Iterator[str]:
    """All texts of a Python file but its docstrings, with a gap for each value that is filled in."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else GAP for part in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield re.sub(r"%(?:\.\d)?[sdf]", GAP, node.value)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """What the package and the workflow can say."""
    python = [path for folder in ("src/autotailor", "workflow") for path in (ROOT / folder).rglob("*.py")]
    rules = [path.read_text(encoding="utf-8") for path in (ROOT / "workflow").rglob("*.smk")]
    return [text for path in python for text in texts_of(path)] + rules


def quoted() -> list[str]:
    """The messages of the page: the first cell of each row, between backticks."""
    rows = (line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `"))
    return [row.split("`")[1] for row in rows]


def says(text: str, message: str) -> bool:
    """Whether the parts of a message come in a text in their order."""
    position = 0
    for part in message.split(GAP):
        found = text.find(part.strip(), position)
        if found < 0:
            return False
        position = found + len(part.strip())
    return True


@pytest.mark.parametrize("message", quoted())
def test_a_quoted_message_is_still_said(texts: list[str], message: str) -> None:
    assert any(says(text, message) for text in texts), (
        f"nothing in src/ or workflow/ says {message!r}: correct docs/troubleshooting.md"
    )


def test_no_message_tells_a_project_to_call_snakemake_which_finds_no_workflow_there(texts: list[str]) -> None:
    assert [text for text in texts if re.search(r"(?<!`)`snakemake |\b[Rr]un snakemake\b", text)] == []


def test_a_message_that_nobody_says_is_found(texts: list[str]) -> None:
    assert not any(says(text, "no message of this … project") for text in texts)


def test_no_message_stands_on_the_page_twice() -> None:
    messages = quoted()
    assert len(messages) > 100
    assert sorted(set(messages)) == sorted(messages)
