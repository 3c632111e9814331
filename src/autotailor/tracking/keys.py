"""Keys that MLflow takes: letters, digits, spaces and ``_ - . : /`` only, and none that a file system would shorten.

A character that MLflow refuses becomes ``_xHHHH_``, its code point in hexadecimal, as in the names of XML elements
(``XmlConvert.EncodeName``); the underscore of a key that looks like such a code already becomes ``_x005F_``. So
different keys stay different, and whoever knows the rule reads the key back.
"""

from __future__ import annotations

import hashlib
import posixpath
import re

MAX_KEY = 250  # MLflow's MAX_ENTITY_KEY_LENGTH
_CODE = re.compile(r"_(?=x[0-9A-F]{4,6}_)")
_REFUSED = re.compile(r"[^/\w.\- :]")


def legal(key: str) -> str:
    """The key as MLflow takes it: ``width.*`` becomes ``width._x002A_``; a legal key stays as it is.

    Args:
        key: any key but the empty one, for which MLflow has no place.

    Returns:
        At most 250 characters; of a longer key its begin and a hash of the whole.
    """
    name = _REFUSED.sub(_coded, _CODE.sub("_x005F_", key))
    if posixpath.normpath(name) != name or name.startswith(("/", "..")):
        name = name.replace("/", "_x002F_")
    if name == "." or name.startswith(".."):
        name = "_x002E_" + name[1:]
    if len(name) > MAX_KEY:
        name = f"{name[: MAX_KEY - 13]}-{hashlib.sha256(key.encode(errors='replace')).hexdigest()[:12]}"
    return name


def _coded(found: re.Match[str]) -> str:
    """One refused character as the code that stands for it."""
    return f"_x{ord(found.group()):04X}_"
