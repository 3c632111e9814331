"""Where pools lie, and where servers listen."""

import argparse
import os
import tempfile
from pathlib import Path

from autotailor.artifacts import read_json
from autotailor.commands.terminal import given_path, given_text

INDEX = "pool.txt"
DOCUMENT = "pool.json"
FOLDER = "pool"


def add_pool(parser: argparse.ArgumentParser) -> None:
    """Adds the argument that names a pool."""
    parser.add_argument(
        "pool", type=given_path, metavar="POOL", help="folder of a pool, or of a finished run (results/MODEL/DEVICE)"
    )


def add_address(parser: argparse.ArgumentParser, flag: str, said: str) -> None:
    """Adds the option that names where a server listens."""
    parser.add_argument(
        flag,
        dest="address",
        type=given_text,
        metavar="ADDRESS",
        help=f"{said}: unix:PATH, or tcp:PORT on this machine's loopback (default: a socket of this user)",
    )


def pool_folder(given: Path) -> Path:
    """The pool of a run where a run is named; what was named otherwise.

    Raises:
        PoolError: neither is a pool.
    """
    from autotailor.pool.replacing import restore
    from autotailor.serving import PoolError

    for folder in (given, given / FOLDER):
        restore(folder)
        if (folder / INDEX).exists():
            return folder
    lack = f"holds no {INDEX}" if given.is_dir() else "is no folder"
    raise PoolError(
        f"{given}: {lack}; name the folder of a pool, or of a finished run whose pool was made: `autotailor run "
        "model=NAME device=NAME -- pool`"
    )


def read_classes(folder: Path) -> tuple[str, ...]:
    """The names of a pool's classes, in the order of the outputs; empty where its ``pool.json`` tells none.

    Raises:
        ArtifactError: ``pool.json`` is missing or cannot be read.
    """
    preparation = read_json(folder / DOCUMENT).get("preparation") or {}
    return tuple(map(str, preparation.get("classes", ())))


def address_of(options: argparse.Namespace) -> str:
    """The address that was named, or a Unix socket of this user."""
    if options.address:
        return str(options.address)
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    return f"unix:{folder / f'autotailor-{os.getuid()}.sock'}"
