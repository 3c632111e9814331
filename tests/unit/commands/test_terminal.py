"""What commands print steers no terminal, whoever has made the names in it."""

import ast
import io
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from autotailor.commands.terminal import say, terminal

ROOT = Path(__file__).parents[3]
EVIL = "[/]cat\x1b[2J\u202e"
RAW = {
    ("answer.py", "print"): "JSON, in which all is escaped",
    ("terminal.py", "print"): "what is printable by then",
    ("terminal.py", "Console"): "whose width is asked for",
    ("inspect/command.py", "print"): "a file of the configuration",
}
"""Calls that print without ``say`` and ``terminal``, and why."""


def test_lines_cells_titles_and_styled_texts_become_printable(capsys: pytest.CaptureFixture[str]) -> None:
    say(EVIL)
    made = io.StringIO()
    console = terminal(file=made, least=200, force_terminal=True)
    table = Table("name", title=f"[bold]{EVIL[3:]}[/]")
    table.add_row(EVIL[3:])
    console.print(table)
    console.print(Text(EVIL, "red"))
    for said in (capsys.readouterr().out, made.getvalue()):
        assert "cat\\x1b[2J\\u202e" in said
        assert "\x1b[2J" not in said
        assert "\u202e" not in said
    assert "\x1b[31m" in made.getvalue()  # the console's own colours stay
    assert console.width >= 200


def test_every_command_prints_through_them() -> None:
    folder = ROOT / "src" / "autotailor" / "commands"
    found = {
        (str(path.relative_to(folder)), node.func.id)
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("print", "Console")
    }
    assert found == set(RAW)
