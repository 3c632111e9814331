"""Images of a data set as pictures that a report shows."""

from __future__ import annotations

import base64
import io
from typing import Any

import torch

from autotailor.data.splits import DataSplits


def as_pictures(images: torch.Tensor, data: DataSplits) -> list[Any]:
    """Images ``[n, 3, h, w]``, or of one channel, as RGB pictures of PIL, not normalised any more."""
    from PIL import Image

    mean, std = (torch.tensor(each).reshape(-1, 1, 1) for each in (data.mean, data.std))
    pixels = ((images * std + mean).clamp(0, 1) * 255).round().byte().expand(-1, 3, -1, -1)
    return [Image.fromarray(each) for each in pixels.permute(0, 2, 3, 1).contiguous().numpy()]


def in_base64(picture: Any, kind: str, **options: int) -> str:
    """The file of a picture of PIL in Base64: ``kind`` and ``options`` are those of ``PIL.Image.save``."""
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return base64.b64encode(buffer.getvalue()).decode()
