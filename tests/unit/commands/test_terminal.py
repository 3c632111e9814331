"""What commands print steers no terminal, whoever has made the names in it."""

import argparse
import ast
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from autotailor.__main__ import COMMANDS
from autotailor.commands.terminal import given_path, given_text, own_file, say, terminal

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


def test_the_home_folder_stands_for_a_leading_tilde(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert given_path("~/pools/mine") == tmp_path / "pools" / "mine"
    assert given_path("of/~mine") == Path("of/~mine")
    assert given_path("~nobody_has_this_name/pool") == Path("~nobody_has_this_name/pool")


def test_a_text_that_may_be_a_path_is_read_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert given_text("~/subnet.json") == f"{tmp_path}/subnet.json"
    assert given_text("unix:~/pool.sock") == f"unix:{tmp_path}/pool.sock"
    assert [given_text(text) for text in ("largest", '{"depth": 1}', "tcp:7", "unix:a//b")] == [
        "largest", '{"depth": 1}', "tcp:7", "unix:a//b",
    ]  # fmt: skip


def test_a_file_is_that_of_the_folder_in_which_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert own_file("keys/id") == f"{tmp_path}/keys/id"
    assert own_file("~/id") == f"{tmp_path}/home/id"


def test_every_command_reads_paths_so() -> None:
    found = {(parser.prog, action.dest): action.type for parser in parsers() for action in parser._actions}
    paths = [where for where, kind in found.items() if kind is given_path]
    assert {where[1] for where in paths} >= {"pool", "output", "store", "space", "folder", "directory", "conf"}
    assert Path not in found.values()
    texts = {where[1] for where, kind in found.items() if kind is given_text}
    assert texts == {"subnet", "address", "expected", "worst"}
    assert found["autotailor export", "subnet"] is found["autotailor predict", "subnet"] is given_text


def parsers() -> Iterator[argparse.ArgumentParser]:
    """The parsers of all commands and of their subcommands."""
    whole = argparse.ArgumentParser(prog="autotailor")
    offered = whole.add_subparsers()
    for command in COMMANDS:
        command.add_command(offered)
    waiting = [whole]
    while waiting:
        parser = waiting.pop()
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting.extend(action.choices.values())
