"""External data of ONNX models: which tensors lie in other files, and where those files may be.

The module imports nothing but ONNX, because planning a run lists the files of a model before anything is compiled.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onnx import TensorProto


def tensors(message: Any) -> Iterator[Any]:
    """Every tensor of a model (a protobuf message): weights and attributes, also those of subgraphs and functions."""
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

    A model reached through a link (in the cache of the Hugging Face hub) has two folders: the link's and the file's.
    """
    allowed = {model.absolute().parent.resolve(), model.resolve().parent}
    return any(folder in path.parents for folder in allowed)
