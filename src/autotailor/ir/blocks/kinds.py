"""Names of the kinds of blocks, without the templates: importing these imports PyTorch."""

import functools
import re
from pathlib import Path

BRANCH = "Branch"
PLAIN = "Plain"
BLOCK_NAME = re.compile(r"block[1-9][0-9]*")
"""Names of single blocks, which are numbered along the trunk."""


@functools.cache
def kinds() -> frozenset[str]:
    """All kinds of blocks: those that the sources of the templates name, and those of blocks without a template."""
    sources = (path.read_text(encoding="utf-8") for path in (Path(__file__).parent / "templates").glob("*.py"))
    named = (re.findall(r'^ {4}kind = "(\w+)"$', source, re.MULTILINE) for source in sources)
    return frozenset({BRANCH, PLAIN}.union(*named))
