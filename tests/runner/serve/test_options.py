"""The command line of the server: what it says of options, before it opens a pool."""

import subprocess

import pytest

from served import serve_binary


def called(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(serve_binary()), *words], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_help_is_printed_where_one_looks_for_it(word: str) -> None:
    done = called(word)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: autotailor-serve POOL")


def test_without_a_pool_the_usage_is_an_error() -> None:
    done = called()
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith("usage: autotailor-serve POOL")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pool", "--listen", "x"], "unknown option --listen; --help lists those that there are"),
        (["pool", "--rate"], "--rate needs a value"),
        (["pool", "other"], "expected one pool, not both pool and other"),
        (
            ["nowhere"],
            "nowhere/pool.txt: cannot be read (No such file or directory): copy the whole pool to the device",
        ),
    ],
)
def test_words_that_make_no_sense_are_named(words: list[str], said: str) -> None:
    done = called(*words)
    assert (done.returncode, done.stderr) == (1, f"autotailor-serve: {said}\n")
