"""The terminal of commands: paths as people write them, and where commands print.

Names, messages and logs of other people steer no terminal (``printable``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from autotailor.ir.errors import printable

if TYPE_CHECKING:
    from rich.console import Console


def say(text: object, *, file: IO[str] | None = None, end: str = "\n") -> None:
    """Prints a text at once, on standard output unless a file is given."""
    print(printable(text), file=file or sys.stdout, end=end, flush=True)


def terminal(**settings: Any) -> Console:
    """A console of Rich whose texts are printable, those of tables included.

    Args:
        settings: of the console; with ``least``, it is that many characters wide even where the terminal is narrower.
    """
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.text import Text

    class Terminal(Console):
        """Rich's own control codes stay; those in texts do not."""

        def render_str(self, text: str, **how: Any) -> Text:  # type: ignore[override]
            """See Console: the text of a cell or a line, before its width is taken."""
            return super().render_str(printable(text), **how)

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            """See Console: all that is shown, also what a program has styled itself."""
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(printable(segment.text), segment.style)

    least = settings.pop("least", 0)
    return Terminal(**settings, **({"width": max(Console(**settings).width, least)} if least else {}))


def given_path(text: str) -> Path:
    """A path, with a home folder in the place of a leading ``~``, which shells leave as it is behind ``=``."""
    try:
        return Path(text).expanduser()
    except RuntimeError:  # nobody has this home folder
        return Path(text)


def own_file(text: str) -> str:
    """A path from the folder in which the command is given, for what works in another folder."""
    return str(given_path(text).absolute())


def given_text(text: str) -> str:
    """A text that may be a path, beside names or behind ``unix:``; a leading ``~`` of the path is the home folder."""
    kind = "unix:" if text.startswith("unix:") else ""
    rest = text.removeprefix(kind)
    return f"{kind}{given_path(rest)}" if rest.startswith("~") else text
