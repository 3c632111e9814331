"""The Hugging Face hub, from which timm fetches pretrained weights.

Without a network, the hub's client retries for a minute or two before it uses earlier downloads. This module asks the
hub once: if the hub does not answer, the client only uses earlier downloads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub import constants, get_session
from huggingface_hub.errors import LocalEntryNotFoundError

PATIENCE_S = 5.0


@contextmanager
def hub() -> Iterator[None]:
    """Inside this context the hub's client is in offline mode if the hub does not answer.

    Raises:
        ConnectionError: the hub does not answer, and there is no earlier download of the weights.
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
    """Whether the hub answers a request at all."""
    try:
        get_session().head(constants.ENDPOINT, timeout=PATIENCE_S)
    except Exception:  # the kind of error depends on the client's HTTP library
        return False
    return True
