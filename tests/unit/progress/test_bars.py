"""Progress bars where there is no terminal."""

import pytest

from autotailor.progress.bars import track


@pytest.mark.parametrize("transient", [True, False])
def test_transient_bars_leave_nothing_where_there_is_no_terminal(
    transient: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(track([1, 2], "counting", transient=transient)) == [1, 2]
    said = capsys.readouterr().out
    assert said == "" if transient else "counting" in said
