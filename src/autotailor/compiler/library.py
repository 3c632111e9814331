"""Calls of onnx-ir and onnxscript: what they raise or log becomes a GraphError that names the step."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import onnx
import onnx_ir as ir

from autotailor.ir.errors import GraphError

Result = TypeVar("Result")
_LOGGERS = ("onnxscript", "onnx_ir", "timm", "huggingface_hub")


def attempt(step: str, model: str, function: Callable[[], Result]) -> Result:
    """Runs one step of a library over a model.

    Raises:
        GraphError: whatever the library raised, with the innermost reason.
    """
    try:
        with quiet():
            return function()
    except GraphError:
        raise
    except Exception as error:
        raise GraphError(f"graph {model}: {step}: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """First line of the innermost cause of an error."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps the libraries' warnings out of the user's terminal; what matters is checked and raised."""
    levels = {name: logging.getLogger(name).level for name in _LOGGERS}
    try:
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def complaint(model: ir.Model, function: Callable[[onnx.ModelProto], object]) -> str:
    """What ONNX says against a model that a pass could not handle; the passes themselves only log it."""
    try:
        function(ir.to_proto(model))
    except Exception as error:
        return reason(error)
    return "ONNX gives no reason; it may depend on the values of the image"
