"""The Hugging Face hub, where timm's pretrained weights are.

Its client asks an address that does not answer again and again for a minute or two, before it looks at what it has
fetched before. Here one question decides: where nothing answers, files fetched before are used, or none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub import constants, get_session
from huggingface_hub.errors import LocalEntryNotFoundError

PATIENCE_S = 5.0


@contextmanager
def hub() -> Iterator[None]:
    """Within this context the hub's client is in offline mode where the hub does not answer.

    Raises:
        ConnectionError: the hub does not answer, and what is asked for has not been fetched before.
    """
    wanted = constants.HF_HUB_OFFLINE
    offline = wanted or not _answers()
    constants.HF_HUB_OFFLINE = offline
    try:
        yield
    except LocalEntryNotFoundError:
        if wanted or not offline:
            raise
        raise ConnectionError(f"{constants.ENDPOINT} does not answer, and no earlier download is there") from None
    finally:
        constants.HF_HUB_OFFLINE = wanted


def _answers() -> bool:
    """Whether anything at all comes back; the kind of error depends on the HTTP library below."""
    try:
        get_session().head(constants.ENDPOINT, timeout=PATIENCE_S)
    except Exception:
        return False
    return True
