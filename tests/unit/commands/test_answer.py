"""How commands answer."""

import argparse
import os

import pytest

from autotailor.commands import answer


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (95.0, 0.4, "95.00 ±0.40"),
        (0.08729852, 0.00013382, "0.08730 ±0.00013"),
        (2345.6, 12.3, "2346 ±12"),
        (0.5, 1e-9, "0.500000 ±0.000000"),
        (0.0942181, None, "0.09422"),
        (1.0, 0.0, "1"),
        (None, None, ""),
    ],
)
def test_numbers_are_shown_as_precisely_as_they_are_known(value: float, error: float, shown: str) -> None:
    assert answer.number(value, error) == shown


@pytest.mark.parametrize("is_json", [True, False])
def test_with_json_nothing_but_the_answer_reaches_standard_output(
    is_json: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    with answer.only_the_answer(argparse.Namespace(json=is_json)):
        print("progress")
        os.write(1, b"a library's words\n")
    print("the answer")
    said = capfd.readouterr()
    assert ("progress" in said.out, "library" in said.out) == (not is_json, not is_json)
    assert ("progress" in said.err, "library" in said.err) == (is_json, is_json)
    assert said.out.endswith("the answer\n")
