"""Calls of other libraries: what they raise names the step, and what they log stays out of the terminal."""

import logging

import onnx
import onnx_ir as ir
import pytest

from autotailor.compiler.library import attempt, complaint, quiet, reason
from autotailor.ir.errors import GraphError
from onnx_text import model_of


def fail(error: Exception, cause: Exception | None = None) -> None:
    raise error from cause


def test_a_step_that_works_gives_its_result() -> None:
    assert attempt("it cannot be doubled", "g", lambda: 2 * 21) == 42


def test_a_step_that_fails_is_named_with_its_innermost_cause() -> None:
    with pytest.raises(GraphError, match=r"^graph g: it cannot be read: the cause$") as raised:
        attempt("it cannot be read", "g", lambda: fail(ValueError("what is around it"), TypeError("the cause")))
    assert isinstance(raised.value.__cause__, ValueError)


def test_an_error_of_autotailor_passes_as_it_is() -> None:
    with pytest.raises(GraphError, match=r"^node a: no$"):
        attempt("it cannot be read", "g", lambda: fail(GraphError("node a: no")))


@pytest.mark.parametrize(
    ("error", "said"),
    [(ValueError("  one\ntwo"), "one"), (ValueError(), "ValueError"), (ValueError("x" * 999), "x" * 300)],
    ids=["several lines", "no words", "many words"],
)
def test_a_reason_is_one_line(error: Exception, said: str) -> None:
    assert reason(error) == said


def warn_and_fail() -> None:
    with quiet():
        logging.getLogger("onnx_ir").warning("unheard")
        raise ValueError("stop")


def test_libraries_are_quiet_for_a_while_whatever_happens(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("onnx_ir")
    before = log.level
    with pytest.raises(ValueError, match="stop"):
        warn_and_fail()
    log.warning("heard")
    assert [record.message for record in caplog.records] == ["heard"]
    assert log.level == before


def test_a_complaint_is_what_onnx_says() -> None:
    model = ir.from_proto(model_of("y = Nothing (x)"))
    assert "Nothing" in complaint(model, onnx.checker.check_model)


def test_where_onnx_has_none_the_complaint_says_so() -> None:
    assert "gives no reason" in complaint(ir.from_proto(model_of("y = Relu (x)")), lambda proto: None)
