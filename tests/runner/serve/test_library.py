"""The C interface of a pool: the example of the documentation, threads, errors."""

import ctypes
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from device.emulation import needed
from pools import CLASSES, SIDES, TinyPool, early_pool, tiny_pool
from served import SOURCES, serve_binary

LARGEST = max(SIDES)
NAME = f"member_{len(SIDES) - 1:02}"
IMAGE = np.random.default_rng(3).normal(size=(3, LARGEST, LARGEST)).astype(np.float32)

THREADS = r"""
#include <autotailor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>

static autotailor_pool* pool;
static float picture[3 * SIDE * SIDE], expected[CLASSES];

static void* infer(void* place) {
    float outputs[CLASSES];
    autotailor_result result;
    for (int i = 0; i < 200; ++i) {
        if (i % 50 == 7 && autotailor_set(pool, "{\"rate\": 5}")) return (void*)autotailor_error();
        if (autotailor_infer(pool, picture, 3, SIDE, SIDE, 0.0f, outputs, CLASSES, &result))
            return (void*)autotailor_error();
        if (memcmp(outputs, expected, sizeof outputs)) return (void*)"other outputs than before";
        if (result.latency_ms <= 0 || result.cpu_ms <= 0) return (void*)"no times";
    }
    char text[8];
    const size_t needed = autotailor_status(pool, text, sizeof text);
    if (needed <= sizeof text || strlen(text) != sizeof text - 1) return (void*)"the status was not cut";
    return place;
}

int main(int count, char** words) {
    pthread_t threads[4];
    if (count != 2 || fread(picture, sizeof picture, 1, stdin) != 1) return 2;
    pool = autotailor_open(words[1], "{\"deadline_ms\": 1000}");
    if (!pool || autotailor_infer(pool, picture, 3, SIDE, SIDE, 0.0f, expected, CLASSES, NULL)) return 3;
    for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, infer, NULL);
    for (int i = 0; i < 4; ++i) {
        void* wrong = NULL;
        pthread_join(threads[i], &wrong);
        if (wrong) { printf("%s\n", (const char*)wrong); return 4; }
    }
    size_t size = autotailor_status(pool, NULL, 0);
    char* status = malloc(size + 100);
    autotailor_status(pool, status, size + 100);
    printf("%s\n", status);
    free(status);
    autotailor_close(pool);
    return 0;
}
"""


@pytest.fixture
def pool(tmp_path: Path) -> TinyPool:
    return tiny_pool(tmp_path / "pool")


@pytest.fixture(params=["host", pytest.param("sanitized", marks=pytest.mark.sweep)])
def target(request: pytest.FixtureRequest) -> str:
    """The library under test: this computer's; in sweeps also one with sanitizers."""
    return str(request.param)


def built(target: str, folder: Path, compiler: str, source: Path, *options: str) -> Path:
    installed = serve_binary(target).parent
    if target == "sanitized":
        options = (*options, "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    program = folder / "program"
    words = [needed(compiler, compiler), *options, str(source), "-I", str(installed), "-L", str(installed)]
    words += ["-lautotailor", f"-Wl,-rpath,{installed}", "-o", str(program)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def test_the_example_says_the_class_of_a_picture(pool: TinyPool, target: str, tmp_path: Path) -> None:
    program = built(target, tmp_path, "g++", SOURCES / "example.cpp", "-std=c++17", "-Wall", "-Wextra", "-Werror")
    done = subprocess.run(
        [str(program), str(pool.folder), "1000", "3"], input=IMAGE.tobytes(), capture_output=True, check=True
    )
    logits = pool.logits(NAME, IMAGE)
    lines = done.stdout.decode().splitlines()
    assert len(lines) == 3
    for line in lines:
        kind, value = line.split(", ")[:2]
        assert kind == f"class {logits.argmax()} of {CLASSES}"
        assert float(value) == pytest.approx(logits.max(), abs=1e-4)
        assert f"by {NAME} in" in line
    failed = subprocess.run([str(program), str(tmp_path / "none"), "1"], capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert "none/pool.txt: cannot be read" in failed.stderr


def test_the_example_says_which_exit_answered(target: str, tmp_path: Path) -> None:
    pool = early_pool(tmp_path / "pool")
    program = built(target, tmp_path, "g++", SOURCES / "example.cpp", "-std=c++17")
    logits = pool.logits(0, pool.picture(0))
    shares = np.exp(logits) / np.exp(logits).sum()
    for deadline in ("1000", "0.0001"):
        words, sent = [str(program), str(pool.folder), deadline], pool.picture(0).tobytes()
        (line,) = subprocess.run(words, input=sent, capture_output=True, check=True).stdout.decode().splitlines()
        assert line.startswith(f"class {logits.argmax()} of {CLASSES}, ")
        assert line.endswith(f"exit stage1, confidence {shares.max():.3f}")
        assert (", too late" in line) == (deadline != "1000")


def test_exits_have_names(library: ctypes.CDLL, tmp_path: Path) -> None:
    library.autotailor_exit.restype = ctypes.c_char_p
    library.autotailor_exit.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32]
    opened = library.autotailor_open(str(early_pool(tmp_path / "pool").folder).encode(), None)
    assert [library.autotailor_exit(opened, 0, number) for number in range(3)] == [b"stage1", b"stage2", b"last"]
    for member, number, message in ((0, 3, b"there is no exit 3"), (1, 0, b"there is no member 1")):
        assert library.autotailor_exit(opened, member, number) is None
        assert message in library.autotailor_error()
    library.autotailor_close(opened)


def test_four_threads_of_a_c_program_take_turns(pool: TinyPool, target: str, tmp_path: Path) -> None:
    (tmp_path / "threads.c").write_text(THREADS)
    options = ("-std=c11", "-Wall", "-Wextra", "-pthread", f"-DSIDE={LARGEST}", f"-DCLASSES={CLASSES}")
    program = built(target, tmp_path, "gcc", tmp_path / "threads.c", *options)
    done = subprocess.run(
        [str(program), str(pool.folder)], input=IMAGE.tobytes(), capture_output=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout
    status = json.loads(done.stdout)
    assert status["counters"]["inferences"] == 801
    assert status["settings"]["rate"] == 5


@pytest.fixture
def library() -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(serve_binary().parent / "libautotailor.so"))
    loaded.autotailor_open.restype = ctypes.c_void_p
    loaded.autotailor_error.restype = loaded.autotailor_member.restype = ctypes.c_char_p
    loaded.autotailor_close.argtypes = [ctypes.c_void_p]
    loaded.autotailor_set.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    loaded.autotailor_member.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    numbers = [ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_float]
    places = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    loaded.autotailor_infer.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *numbers, *places]
    return loaded


def test_what_fails_says_why_and_leaves_the_pool_usable(pool: TinyPool, library: ctypes.CDLL) -> None:
    def said() -> str:
        return str(library.autotailor_error().decode())

    for settings, message in (
        (b'{"margin": -1}', "margin is -1"),
        (b'{"memory_mb": 0.0001}', "raise the limit"),
        (b"[]", "JSON object"),
        (b'{"pin": "x"}', "no member x"),
    ):
        assert library.autotailor_open(str(pool.folder).encode(), settings) is None
        assert message in said()
    assert library.autotailor_open(None, None) is None
    assert "NULL" in said()
    opened = library.autotailor_open(str(pool.folder).encode(), b'{"deadline_ms": 1000, "margin": 0, "keep_s": 1}')
    assert opened, said()
    assert said() == ""
    outputs = np.zeros(CLASSES, np.float32)

    def infer(channels: int, side: int, deadline: float, places: int, picture: int | None = IMAGE.ctypes.data) -> int:
        return int(
            library.autotailor_infer(opened, picture, channels, side, side, deadline, outputs.ctypes.data, places, None)
        )

    for arguments, message in (
        ((3, 5, 0.0, CLASSES), "the size 3x5x5"),
        ((3, -LARGEST, 0.0, CLASSES), "the size 3x-"),
        ((3, LARGEST, -1.0, CLASSES), "no time"),
        ((3, LARGEST, 0.0, CLASSES - 1), f"{CLASSES - 1} places for outputs"),
        ((3, LARGEST, 0.0, CLASSES, None), "the picture is NULL"),
    ):
        assert infer(*arguments) == 1  # type: ignore[arg-type]
        assert message in said()
    for wrong in (np.nan, np.inf, -np.inf):
        spoilt = IMAGE.copy()
        spoilt[0, 0, 0] = spoilt[-1, -1, -1] = wrong
        assert infer(3, LARGEST, 0.0, CLASSES, spoilt.ctypes.data) == 1
        assert f"2 of the picture's {spoilt.size} numbers are NaN or infinite" in said()
    assert library.autotailor_set(opened, b'{"margin": 1}') == 1
    assert "margin is no setting" in said()
    assert library.autotailor_member(opened, 99) is None
    assert "no member 99" in said()
    assert infer(3, LARGEST, 0.0, CLASSES) == 0
    np.testing.assert_allclose(outputs, pool.logits(NAME, IMAGE), atol=1e-4)
    assert library.autotailor_member(opened, len(SIDES) - 1) == NAME.encode()
    library.autotailor_close(opened)
    library.autotailor_close(None)


def test_the_library_shows_its_own_functions_only() -> None:
    library = serve_binary().parent / "libautotailor.so"
    listed = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    header = (SOURCES / "autotailor.h").read_text()
    assert names
    assert all(name.startswith("autotailor_") and f"{name}(" in header for name in names)
