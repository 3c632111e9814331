"""Reports the pass over all pictures: refuses those that cannot be read, and warns of doubtful ones."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from autotailor.data.examination import listed, refuse
from autotailor.data.files.contents import Content
from autotailor.data.pictures.layout import Layout
from autotailor.data.pictures.listing import is_picture

logger = logging.getLogger(__name__)


def report(name: str, layout: Layout, contents: Sequence[Content]) -> None:
    """Refuses pictures that cannot be read, and warns of files and copies that may spoil training or accuracy.

    Args:
        name: of the dataset, for messages.
        layout: of the pictures.
        contents: of the layout's files, in the order of ``layout.files()``.

    Raises:
        DataError: some pictures cannot be read; the message gives their number, and the first ten with their reasons.
    """
    files = layout.files()
    refused = [f"{path} {content.verdict}" for path, content in zip(files, contents, strict=True) if content.verdict]
    refuse(name, f"{len(refused):,} of {len(files):,} pictures cannot be used", refused)
    _warn_of_others(name, layout)
    _warn_of_strays(name, layout)
    _warn_of_copies(name, layout, contents)


def _warn_of_others(name: str, layout: Layout) -> None:
    """Warns of files that are left out because of their suffix."""
    others = [listing.folder / path for listing in layout.parts.values() for path in listing.others]
    if others:
        kinds = ", ".join(f"{suffix or 'no suffix'} ({count})" for suffix, count in _suffixes(others).most_common(5))
        logger.warning(
            "data %s: %d %s left out, no pictures by their suffix: %s; convert those that count",
            name,
            len(others),
            "file is" if len(others) == 1 else "files are",
            kinds,
        )


def _warn_of_strays(name: str, layout: Layout) -> None:
    """Warns of pictures that lie beside the folders of classes, because they belong to no class and are left out."""
    labelled = [listing.folder for listing in layout.parts.values() if listing.classes]
    strays = [str(path) for folder in labelled for path in sorted(folder.iterdir()) if _is_stray(path)]
    if strays:
        logger.warning(
            "data %s: %s beside the folders of the classes, and %s left out; move what counts into its class:\n%s",
            name,
            f"{len(strays):,} {'picture lies' if len(strays) == 1 else 'pictures lie'}",
            "is" if len(strays) == 1 else "are",
            listed(strays),
        )


def _is_stray(path: Path) -> bool:
    return is_picture(path.name) and not path.name.startswith(".") and path.is_file()


def _suffixes(paths: Sequence[Path]) -> Counter[str]:
    return Counter(path.suffix.lower() for path in paths)


def _warn_of_copies(name: str, layout: Layout, contents: Sequence[Content]) -> None:
    """Warns of equal files in two classes, which contradict each other, and in two parts, which inflate accuracy."""
    first: dict[str, tuple[str, str, Path]] = {}
    classes: list[str] = []
    parts: list[str] = []
    hashes = iter(contents)
    for part, listing in layout.parts.items():
        for path, name_of_class, content in zip(listing.files(), listing.class_names(), hashes, strict=False):
            kept, its_class, other = first.setdefault(content.sha256, (part, name_of_class, path))
            if its_class != name_of_class:
                classes.append(f"{other} and {path}")
            elif kept != part:
                parts.append(f"{other} and {path}")
    for pairs, what in ((classes, "in two classes"), (parts, "in two of train, val and test")):
        if pairs:
            lie = "picture lies" if len(pairs) == 1 else "pictures lie"
            logger.warning(
                "data %s: %d %s %s; remove one of each pair:\n%s", name, len(pairs), lie, what, listed(pairs)
            )
