"""Calls of onnx-ir and onnxscript: their errors become a GraphError that names the step, their logs are silenced."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from autotailor.ir.errors import GraphError, first_line

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

Result = TypeVar("Result")
_LOGGERS = ("onnxscript", "onnx_ir", "timm", "huggingface_hub", "torch")


def attempt(step: str, model: str, function: Callable[[], Result]) -> Result:
    """Runs one step of a library over a model.

    Args:
        step: what has failed if the library raises, as the clause of a message ("its nodes cannot be named").
        model: name of the model, for the message.
        function: the step.

    Raises:
        GraphError: the library raised an error; the message gives its innermost reason.
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
    return first_line(error)[:300]


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps what libraries log out of the user's terminal; the compiler itself checks what matters."""
    levels = {name: logging.getLogger(name).level for name in _LOGGERS}
    try:
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def complaint(model: ir.Model, function: Callable[[onnx.ModelProto], object]) -> str:
    """ONNX's reason why a pass could not handle a model; the passes themselves only log that reason.

    Args:
        model: after the pass.
        function: a call of ONNX that raises for such a model.
    """
    import onnx_ir as ir

    try:
        function(ir.to_proto(model))
    except Exception as error:
        return reason(error)
    return "ONNX gives no reason; it may depend on the values of the image"
