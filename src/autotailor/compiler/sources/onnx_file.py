"""Reads untrusted ONNX files: the size that a tensor claims is compared with the file before any bytes are read.

ONNX keeps large weights in files beside the model (*external data*): a tensor names a file, an offset and a length. The
author of the model chose that name, so it is only followed inside the model's own folder.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import psutil
from onnx import TensorProto

from autotailor.compiler.library import reason
from autotailor.compiler.sources.external_data import is_external, is_inside, tensors
from autotailor.ir.errors import GraphError

ALIASES = 4  # how often the tensors of a model may read one file in full; tied weights are sometimes stored once
_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")


@dataclass(frozen=True)
class _Stretch:
    """The bytes of one tensor in a file beside the model."""

    tensor: Any
    path: Path
    offset: int
    length: int


def read_model(path: Path) -> onnx.ModelProto:
    """An ONNX file with its external data read into it.

    Args:
        path: of the model; the files that its tensors name must lie in the model's folder or below it.

    Raises:
        GraphError: the file is missing or is not ONNX; a tensor claims another size than its data has, or names a file
            outside the model's folder; the weights do not fit into free memory.
    """
    if not path.is_file():
        raise GraphError(f"ONNX file {path} does not exist; check its path (model.source in a configuration)")
    try:
        model = onnx.load_model(str(path), load_external_data=False)
    except Exception as error:
        raise GraphError(f"{path} is no valid ONNX file: {reason(error)}; export it again") from error
    stretches = [_stretch(tensor, path) for tensor in tensors(model) if is_external(tensor)]
    _check_total(stretches, path)
    for stretch in stretches:
        _read(stretch)
    check_model(model)
    return model


def check_model(model: onnx.ModelProto) -> None:
    """Refuses a model in memory whose tensors lack data.

    Raises:
        GraphError: a tensor claims another size than its data has, or its data lies in a file.
    """
    for tensor in tensors(model):
        if is_external(tensor):
            raise GraphError(
                f"graph {model.graph.name}: weight {tensor.name} lies in a file beside the model, but a model in "
                f"memory has no folder; give the path of the .onnx file instead, or read it with onnx.load(path)"
            )
        _check_inline(tensor)


def _length(tensor: Any) -> int:
    """Bytes of a tensor, from its shape and its type."""
    return math.ceil(_elements(tensor) * _data_type(tensor).bitwidth / 8)


def _elements(tensor: Any) -> int:
    if any(size < 0 for size in tensor.dims):
        raise GraphError(f"weight {tensor.name}: its shape {list(tensor.dims)} has a negative size; export it again")
    return math.prod(tensor.dims)


def _data_type(tensor: Any) -> ir.DataType:
    try:
        data_type = ir.DataType(tensor.data_type)
        _ = data_type.bitwidth
    except (ValueError, TypeError) as error:
        raise GraphError(
            f"weight {tensor.name}: its type, number {tensor.data_type}, is not a type of weights; export it again"
        ) from error
    return data_type


def _check_inline(tensor: Any) -> None:
    """Refuses a tensor inside the model's file whose data does not have the length of its shape."""
    if tensor.data_type == TensorProto.STRING:
        there, needed = len(tensor.string_data), _elements(tensor)
    elif tensor.HasField("raw_data"):
        there, needed = len(tensor.raw_data), _length(tensor)
    else:
        there = sum(len(getattr(tensor, field)) for field in _FIELDS)
        bits, elements = _data_type(tensor).bitwidth, _elements(tensor)
        needed = math.ceil(elements * bits / 8) if bits < 8 else elements * _parts(tensor)
    if there != needed:
        raise GraphError(
            f"weight {tensor.name} of shape {list(tensor.dims)} needs data of length {needed}, the file holds {there}; "
            f"the file is damaged, export it again"
        )


def _parts(tensor: Any) -> int:
    """Numbers that ONNX stores for one element: two for complex numbers, one for others."""
    return 2 if tensor.data_type in (TensorProto.COMPLEX64, TensorProto.COMPLEX128) else 1


def _stretch(tensor: Any, model: Path) -> _Stretch:
    """The file and the range of bytes of an external tensor.

    Raises:
        GraphError: the file is missing or lies outside the model's folder, or the bytes lie beyond the file's end.
    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    path = _inside(str(entries.get("location", "")), str(tensor.name), model)
    offset, length = (_number(entries, key, str(tensor.name), model) for key in ("offset", "length"))
    needed, size = _length(tensor), path.stat().st_size
    offset = offset or 0
    if length is not None and length != needed:
        raise GraphError(
            f"{model}: weight {tensor.name} of shape {list(tensor.dims)} needs {needed} bytes, but names {length} of "
            f"{path.name}; export it again"
        )
    if offset + needed > size:
        raise GraphError(
            f"{model}: weight {tensor.name} needs bytes {offset} to {offset + needed} of {path.name}, which has "
            f"{size}; copy the file again, it is cut off or belongs to another model"
        )
    return _Stretch(tensor, path, offset, needed)


def _inside(location: str, tensor: str, model: Path) -> Path:
    """The file that a tensor names.

    Raises:
        GraphError: the file is missing or lies outside the model's folder.
    """
    folder = model.absolute().parent
    named = folder / location
    try:
        path = named.resolve()
        outside = not location or Path(location).is_absolute() or not is_inside(path, model)
        is_file = not outside and path.is_file()
    except (OSError, ValueError, RuntimeError) as error:  # impossible file names, links in a circle
        raise GraphError(f"{model}: weight {tensor} names the file {location!r}: {error}; export it again") from error
    if outside:
        raise GraphError(
            f"{model}: weight {tensor} names the file {location!r}, outside the model's folder {folder}, which is not "
            f"read; if you trust the model, put the file into that folder and export the model again, or save the "
            f"model as one file"
        )
    if not is_file:
        raise GraphError(
            f"{model}: the file {named} with weight {tensor} is missing; copy it to the model's folder from the place "
            f"where the model comes from"
        )
    return path


def _number(entries: dict[str, str], key: str, tensor: str, model: Path) -> int | None:
    text = entries.get(key)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise GraphError(f"{model}: weight {tensor} has the {key} {text[:40]!r}, expected bytes; export it again")
    return int(text)


def _check_total(stretches: list[_Stretch], model: Path) -> None:
    """Refuses weights that read the same bytes more than ``ALIASES`` times, or that do not fit into free memory."""
    read: defaultdict[Path, int] = defaultdict(int)
    for stretch in stretches:
        read[stretch.path] += stretch.length
    for path, total in read.items():
        if total > ALIASES * (size := path.stat().st_size):
            raise GraphError(
                f"{model}: its weights read {total} bytes of {path.name}, which has {size}; they overlap, export the "
                f"model again"
            )
    total, free = sum(read.values()), psutil.virtual_memory().available
    if total > free:
        raise GraphError(f"{model}: its weights need {total} bytes of memory, {free} are free; close other programs")


def _read(stretch: _Stretch) -> None:
    """Reads the bytes from the file into the tensor."""
    try:
        with stretch.path.open("rb") as file:
            file.seek(stretch.offset)
            content = file.read(stretch.length)
    except OSError as error:
        raise GraphError(f"{stretch.path} with weight {stretch.tensor.name} cannot be read: {error}") from error
    stretch.tensor.raw_data = content
    stretch.tensor.ClearField("external_data")
    stretch.tensor.data_location = TensorProto.DEFAULT
