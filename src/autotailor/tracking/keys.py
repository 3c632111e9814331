"""Keys that MLflow accepts: letters, digits, spaces and ``_ - . : /`` only, and no path that is not normalised.

A character that MLflow refuses becomes ``_xHHHH_``, its code point in hexadecimal, as in the names of XML elements
(``XmlConvert.EncodeName``). An underscore that already begins such a code, or would with the code behind it, becomes
``_x005F_``. Different keys therefore stay different, and every key can be decoded.
"""

import hashlib
import posixpath
import re

MAX_KEY = 250  # MLflow's MAX_ENTITY_KEY_LENGTH
_REFUSED, _REFUSED_AND_SLASHES = r"[^/\w.\- :]", r"[^\w.\- :]"


def legal(key: str) -> str:
    """Encodes a key for MLflow: ``width.*`` becomes ``width._x002A_``; a legal key stays unchanged.

    Args:
        key: any key that is not empty; MLflow accepts no empty keys.

    Returns:
        At most 250 characters; a longer key is cut and gets a hash of the whole key as its end.
    """
    path = re.sub(_REFUSED, "_", key)
    is_normal = posixpath.normpath(path) == path and not path.startswith(("/", ".."))
    refused = _REFUSED if is_normal else _REFUSED_AND_SLASHES
    name = re.sub(refused, _coded, re.sub(rf"_(?=x[0-9A-F]{{4,6}}(_|{refused}))", "_x005F_", key))
    if name == "." or name.startswith(".."):
        name = "_x002E_" + name[1:]
    if len(name) > MAX_KEY:
        name = f"{name[: MAX_KEY - 13]}-{hashlib.sha256(key.encode(errors='replace')).hexdigest()[:12]}"
    return name


def _coded(match: re.Match[str]) -> str:
    """The code of one refused character."""
    return f"_x{ord(match.group()):04X}_"
