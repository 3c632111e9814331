"""ONNX files from strangers: what a tensor claims is compared with the bytes that are there before any are read.

ONNX keeps large weights in files beside the model (*external data*): a tensor names a file, an offset and a length. The
name comes from whoever made the model, so it may only lead into the model's own folder.
"""

from __future__ import annotations

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

ALIASES = 4  # times that the tensors of a model may read one file: tied weights are sometimes stored as one
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
        path: of the model; the files that its tensors name lie in its folder, or in folders inside that one.

    Raises:
        GraphError: the file is missing or no ONNX; a tensor claims another size than its data has, or names a file
            outside the model's folder; the weights do not fit into the memory that is free.
    """
    if not path.is_file():
        raise GraphError(f"ONNX file {path} does not exist")
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
    """Refuses a model in memory whose tensors are not wholly there.

    Raises:
        GraphError: a tensor claims another size than its data has, or its data lies in a file.
    """
    for tensor in tensors(model):
        if is_external(tensor):
            raise GraphError(
                f"graph {model.graph.name}: weight {tensor.name} lies in a file beside the model, whose folder a model "
                f"in memory does not know; hand over the path of the .onnx file, or read it with onnx.load(path)"
            )
        _check_inline(tensor)


def _length(tensor: Any) -> int:
    """Bytes that the shape and the type of a tensor stand for."""
    return math.ceil(_elements(tensor) * _data_type(tensor).bitwidth / 8)


def _elements(tensor: Any) -> int:
    if any(size < 0 for size in tensor.dims):
        raise GraphError(f"weight {tensor.name}: its shape {list(tensor.dims)} has a negative size; export it again")
    return math.prod(tensor.dims)


def _data_type(tensor: Any) -> ir.DataType:
    try:
        found = ir.DataType(tensor.data_type)
        _ = found.bitwidth
    except (ValueError, TypeError) as error:
        raise GraphError(
            f"weight {tensor.name}: its type, number {tensor.data_type}, is none that weights have; export it again"
        ) from error
    return found


def _check_inline(tensor: Any) -> None:
    """Refuses a tensor inside the model's file whose data is not as long as its shape says."""
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
            f"it is damaged, export it again"
        )


def _parts(tensor: Any) -> int:
    """Numbers that ONNX stores for one element: complex numbers have two."""
    return 2 if tensor.data_type in (TensorProto.COMPLEX64, TensorProto.COMPLEX128) else 1


def _stretch(tensor: Any, model: Path) -> _Stretch:
    """Where the bytes of an external tensor are.

    Raises:
        GraphError: outside the model's folder, in no file, or beyond the end of the file.
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
    """The file that a tensor names."""
    folder = model.absolute().parent
    named = folder / location
    try:
        found = named.resolve()
        outside = not location or Path(location).is_absolute() or not is_inside(found, model)
        is_file = not outside and found.is_file()
    except (OSError, ValueError, RuntimeError) as error:  # names that no file can have, links in a circle
        raise GraphError(f"{model}: weight {tensor} names the file {location!r}: {error}; export it again") from error
    if outside:
        raise GraphError(
            f"{model}: weight {tensor} names the file {location!r}, outside the model's folder {folder}, and is not "
            f"read; if you trust the model, put the file into that folder and export the model again, or save it as "
            f"one file"
        )
    if not is_file:
        raise GraphError(
            f"{model}: the file {named} with weight {tensor} is missing; copy it from where the model comes from, "
            f"to the model's folder"
        )
    return found


def _number(entries: dict[str, str], key: str, tensor: str, model: Path) -> int | None:
    text = entries.get(key)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise GraphError(f"{model}: weight {tensor} has the {key} {text[:40]!r}, expected bytes; export it again")
    return int(text)


def _check_total(stretches: list[_Stretch], model: Path) -> None:
    """Refuses weights that read the same bytes over and over, or that do not fit into memory."""
    read: defaultdict[Path, int] = defaultdict(int)
    for stretch in stretches:
        read[stretch.path] += stretch.length
    for path, total in read.items():
        if total > ALIASES * (size := path.stat().st_size):
            raise GraphError(
                f"{model}: its weights read {total} bytes of {path.name}, which has {size}; they overlap, export again"
            )
    total, free = sum(read.values()), psutil.virtual_memory().available
    if total > free:
        raise GraphError(f"{model}: its weights need {total} bytes of memory, {free} are free; close other programs")


def _read(stretch: _Stretch) -> None:
    """Moves the bytes into the tensor."""
    try:
        with stretch.path.open("rb") as file:
            file.seek(stretch.offset)
            content = file.read(stretch.length)
    except OSError as error:
        raise GraphError(f"{stretch.path} with weight {stretch.tensor.name} cannot be read: {error}") from error
    stretch.tensor.raw_data = content
    stretch.tensor.ClearField("external_data")
    stretch.tensor.data_location = TensorProto.DEFAULT
