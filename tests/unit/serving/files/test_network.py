"""Members as networks of ncnn, against NumPy."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pools import SIDES, TinyPool, tiny_pool

from autotailor.artifacts import file_digest
from autotailor.serving import PoolError
from autotailor.serving.files import INDEX, Member, OpenPool, load_member, open_pool


@pytest.fixture
def tiny(tmp_path: Path) -> TinyPool:
    return tiny_pool(tmp_path / "pool")


def run(net: Any, member: Member, image: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    import ncnn

    extractor = net.create_extractor()
    extractor.input(member.input, ncnn.Mat(image).clone())
    code, found = extractor.extract(member.output)
    assert code == 0
    return np.array(found)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_member_computes_what_numpy_computes(tiny: TinyPool, number: int) -> None:
    pool = open_pool(tiny.folder)
    member = pool.index.members[number]
    image = np.random.default_rng(number).normal(size=(3, SIDES[number], SIDES[number])).astype(np.float32)
    found = run(load_member(pool, member), member, image)
    np.testing.assert_allclose(found, tiny.logits(member.name, image), rtol=1e-4, atol=1e-5)


def test_members_differ(tiny: TinyPool) -> None:
    """Otherwise the test above could not tell one member's weights from another's."""
    image = np.random.default_rng(0).normal(size=(3, 8, 8)).astype(np.float32)
    assert not np.allclose(tiny.logits("member_00", image), tiny.logits("member_01", image), rtol=0.05)


def changed(tiny: TinyPool, kind: str, change: Callable[[str], str]) -> tuple[OpenPool, Member]:
    """The pool after a change of a file of its first member, with hashes that fit."""
    path = tiny.folder / "members" / f"member_00.{kind}"
    path.write_text(change(path.read_text()))
    index = open_pool(tiny.folder).index
    first = replace(index.members[0], **{kind: file_digest(path)})
    (tiny.folder / INDEX).write_text(replace(index, members=(first, *index.members[1:])).text())
    return open_pool(tiny.folder), first


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("slices", lambda text: text.rpartition("norms")[0], "is not what member_00.param reads"),
        ("slices", lambda text: text + "norms 0 1\n", "is not what member_00.param reads"),
        ("slices", lambda text: text.replace("norms ", "norms 9999", 1), "a member reads"),
        ("param", lambda text: text.replace("7767517", "1"), "cannot read member_00.param"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(
    tiny: TinyPool, kind: str, change: Callable[[str], str], said: str
) -> None:
    with pytest.raises(PoolError, match=said):
        load_member(*changed(tiny, kind, change))


def test_the_guides_program_runs_a_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = tiny_pool(tmp_path / "results" / "resnet_digits" / "host" / "pool")
    page = (Path(__file__).parents[4] / "docs" / "guides" / "pool.md").read_text(encoding="utf-8")
    program = page.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "docs/guides/pool.md", "exec"), {})
    expected = tiny.logits("member_02", np.zeros((3, SIDES[2], SIDES[2]), np.float32)).argmax()
    assert capsys.readouterr().out == f"{expected}\n"


def test_an_unknown_option_is_named(tiny: TinyPool) -> None:
    pool = open_pool(tiny.folder)
    index = replace(pool.index, options=(("use_magic", True),))
    with pytest.raises(PoolError, match="no option use_magic"):
        load_member(replace(pool, index=index), index.members[0])
