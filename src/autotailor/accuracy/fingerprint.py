"""The fingerprint of everything that a training or an evaluation depends on; it identifies checkpoints and journals."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import torch


def fingerprint(texts: Iterable[str], *tensors: Mapping[str, torch.Tensor]) -> str:
    """SHA-256 (hexadecimal) of texts and of named tensors: name, shape and content."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(f"{text}\n".encode())
    for mapping in tensors:
        for name, tensor in mapping.items():
            digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
