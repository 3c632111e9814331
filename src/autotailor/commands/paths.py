"""Paths as people write them on the command line."""

from pathlib import Path


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
