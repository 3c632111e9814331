"""What a program on a device says about itself, which may be anything."""

import pytest

from autotailor.profiling.runtimes.self_description import self_description


def test_the_first_line_is_read() -> None:
    assert self_description(['{"ncnn": "1.0", "cores": 4}', "more"], "ncnn") == {"ncnn": "1.0", "cores": 4}


ANSWERS = [[], [""], ["sh: not found"], ["[1]"], ["{}"], ['{"ncnn": 1}'], ['{"torch": "2"}'], ["[" * 100_000]]


@pytest.mark.parametrize("lines", ANSWERS, ids=lambda lines: " ".join(lines)[:20])
def test_other_answers_say_nothing(lines: list[str]) -> None:
    assert self_description(lines, "ncnn") is None
