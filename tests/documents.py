"""Reads the documents (README.md, CONTRIBUTING.md, ``docs``): fenced blocks with their marks, links, and paths.

A mark is an HTML comment on the line above a fence. It says how a block is checked that is not simply run:

    <!-- not run: REASON -->                     nothing happens; the reason is for the reader
    <!-- run by: tests/FILE.py::test_NAME -->    that test runs these commands, and must exist
    <!-- planned: REASON -->                     each `snakemake` gets -n
    <!-- printed by the block above -->          a text block, each line of which the block above prints
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMANDS = ("sh", "bash", "python", "yaml")
ALIASES = ("", "shell", "zsh", "console", "py", "python3", "yml")
"""Names of languages under which a command would not be found, and no name at all."""

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>```+)(?P<info>[^`]*)$")
MARK = re.compile(r"^ *<!-- (?P<mark>not run|run by|planned|printed by the block above)(?:: *(?P<text>.*?))? -->$")
TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes:
        page: path of its document, relative to the repository.
        line: number of the line with the opening fence.
        language: first word behind the opening fence.
        title: the file whose content the block is; empty where the block names none.
        code: the text between the fences, without their indentation.
        mark: the mark above the block; empty where there is none.
        text: the mark's text behind its colon.
    """

    page: str
    line: int
    language: str
    title: str
    code: str
    mark: str = ""
    text: str = ""

    @property
    def place(self) -> str:
        """Page and line of the block, in the form that terminals open."""
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """README.md, CONTRIBUTING.md and every page of ``docs``."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(path: Path) -> Iterator[Block]:
    """The fenced blocks of a document, in their order."""
    lines = path.read_text(encoding="utf-8").splitlines()
    opened, start = None, 0
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if opened is None:
            opened, start = fence, number
        elif fence and not fence["info"].strip() and len(fence["ticks"]) >= len(opened["ticks"]):
            indent, info = len(opened["indent"]), opened["info"].strip()
            code = "\n".join(text[indent:] for text in lines[start + 1 : number])
            title = TITLE.search(info)
            mark = MARK.match(lines[start - 1]) if start else None
            yield Block(
                page=path.relative_to(ROOT).as_posix(),
                line=start + 1,
                language=info.split(maxsplit=1)[0] if info else "",
                title=title[1] if title else "",
                code=code,
                mark=mark["mark"] if mark else "",
                text=(mark["text"] or "") if mark else "",
            )
            opened = None
    assert opened is None, f"{path}:{start + 1}: a fence is never closed"


def prose(path: Path) -> str:
    """A document without its fenced blocks."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"^( *)(```+)[^`]*\n.*?^\1\2$", "", text, flags=re.DOTALL | re.MULTILINE)


def commands(code: str) -> list[str]:
    """The commands of a shell block: one for each line, continued lines joined, comments left out."""
    lines = code.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def run_by(path: Path, test: str) -> list[str]:
    """The commands of a document's shell blocks that are marked as run by a test, or by one of a file's."""
    return [
        each for block in blocks(path) if block.language == "sh" and test in block.text for each in commands(block.code)
    ]


def anchor(heading: str) -> str:
    """The anchor that GitHub and MkDocs give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").strip().lower()).replace(" ", "-")
