"""Where an ONNX model keeps its large weights: which tensors lie in other files, and where those files may be.

The module imports nothing but ONNX, because a run asks for the files of a model before it compiles anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onnx import TensorProto


def tensors(message: Any) -> Iterator[Any]:
    """Every tensor of a model (a protobuf message): weights, attributes, those of subgraphs and functions."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for part in [value] if hasattr(value, "ListFields") else value:
            if isinstance(part, TensorProto):
                yield part
            else:
                yield from tensors(part)


def is_external(tensor: Any) -> bool:
    """Whether a tensor's data lie in a file beside the model."""
    return bool(tensor.data_location == TensorProto.EXTERNAL)


def is_inside(path: Path, model: Path) -> bool:
    """Whether a resolved path lies in the folder of a model.

    A model reached through a link (the cache of the Hugging Face hub) has two folders: that of the link and its own.
    """
    allowed = {model.absolute().parent.resolve(), model.resolve().parent}
    return any(folder in path.parents for folder in allowed)
