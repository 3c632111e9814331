"""Operators that no layer is written for: pnnx converts them, and what ncnn cannot run is refused."""

import errno
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import autotailor
from autotailor.ir.feature import OperatorFeature, freeze_attributes
from autotailor.profiling import DeviceConfig, ProfilingError, missing_operators, open_runtime
from autotailor.profiling.runtimes.ncnn import conversion as ncnn_conversion
from autotailor.profiling.runtimes.ncnn import layers as ncnn_layers
from autotailor.profiling.runtimes.ncnn import pnnx as ncnn_pnnx
from autotailor.profiling.runtimes.ncnn import trial as ncnn_trial
from autotailor.profiling.runtimes.ncnn.claims import claims
from autotailor.profiling.runtimes.ncnn.conversion import convert_operators
from autotailor.profiling.runtimes.ncnn.fragments import fragment
from autotailor.profiling.runtimes.ncnn.param import operator_lines, param_text
from autotailor.profiling.runtimes.ncnn.replicas import alone_program
from autotailor.profiling.runtimes.ncnn.trial import TrialNet, run_trials

DEVICE = DeviceConfig.from_section({"name": "test"})
IMAGE = (1, 8, 6, 8)


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of these tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder := tmp_path_factory.mktemp("cache")))
        yield folder


def feature(
    kind: str, inputs: tuple[tuple[int, ...], ...], output: tuple[int, ...], **attributes: object
) -> OperatorFeature:
    return OperatorFeature(kind, inputs, (output,), (), freeze_attributes(attributes))


PRODUCT = feature("Einsum", ((1, 8, 6), (1, 6, 5)), (1, 8, 5), equation="bij,bjk->bik")
RESPONSE = feature("LRN", (IMAGE,), IMAGE, size=3)
REPEATED = feature("Expand", ((1, 8, 1, 1),), IMAGE)
BLOCKS = feature("SpaceToDepth", (IMAGE,), (1, 32, 3, 4), blocksize=2)
UNIT = feature("LpNormalization", (IMAGE,), IMAGE, axis=1)
ALL = (PRODUCT, UNIT, RESPONSE, BLOCKS, REPEATED)


def test_operators_are_converted_together_and_those_that_cannot_be_are_refused() -> None:
    outcomes = convert_operators(ALL)
    layers = {f.kind: outcomes[f.id] for f in ALL}
    assert [step.layer.type for step in layers["Einsum"]] == ["Einsum"]  # type: ignore[union-attr]
    assert [step.layer.type for step in layers["LRN"]] == ["LRN"]  # type: ignore[union-attr]
    assert [step.layer.type for step in layers["Expand"]] == ["Tile"]  # type: ignore[union-attr]
    assert "compute other numbers" in str(layers["SpaceToDepth"])  # pnnx orders the blocks otherwise
    assert "ncnn has no such layer" in str(layers["LpNormalization"])


def test_converted_layers_compute_what_the_operator_is(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    one, other = rng.random((8, 6), dtype=np.float32), rng.random((6, 5), dtype=np.float32)
    for name, value in (("a", one), ("b", other)):
        np.save(tmp_path / f"{name}.npy", value)
    lines = [
        "Input in0 0 1 in0",
        "Input in1 0 1 in1",
        *operator_lines(fragment(PRODUCT), "op", ["in0", "in1"], ["out"]),
    ]
    inputs = (str(tmp_path / "a.npy"), str(tmp_path / "b.npy"))
    (trial,) = run_trials([TrialNet(param_text(lines), None, inputs, ("out",), str(tmp_path))])
    assert trial.failure == ""
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), one @ other, rtol=1e-5)


def test_what_was_converted_is_not_converted_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = convert_operators(ALL)
    calls: list[Path] = []
    convert = ncnn_conversion.run_pnnx
    monkeypatch.setattr(ncnn_conversion, "run_pnnx", lambda path, *more: [calls.append(path), convert(path, *more)])
    assert convert_operators(ALL) == before
    assert not calls
    (damaged,) = cache.rglob(f"{RESPONSE.id}.json")
    damaged.write_text("{")
    assert convert_operators(ALL) == before
    assert len(calls) == 1


def fail(error: OSError | None, code: int) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(command: Sequence[str], **_: object) -> subprocess.CompletedProcess[str]:
        if error is not None:
            raise error
        return subprocess.CompletedProcess(command, code, "", "")

    return run


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 0, r"No space left on device.*free space.*run again"),
        (None, -signal.SIGKILL, r"pnnx was ended by the signal SIGKILL.*more memory"),
    ],
    ids=["disk full", "killed"],
)
def test_what_the_machine_is_to_blame_for_is_no_refusal_of_an_operator(
    monkeypatch: pytest.MonkeyPatch, error: OSError | None, code: int, said: str
) -> None:
    again = feature("LRN", (IMAGE,), IMAGE, size=5 if error else 7)
    with monkeypatch.context() as patch:
        patch.setattr(ncnn_pnnx.subprocess, "run", fail(error, code))
        with pytest.raises(ProfilingError, match=said):
            convert_operators([again])
    assert not isinstance(convert_operators([again])[again.id], str)


def test_a_trial_that_is_killed_is_no_failure_of_its_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ncnn_trial.subprocess, "run", fail(None, -signal.SIGTERM))
    with pytest.raises(ProfilingError, match="was ended by the signal SIGTERM"):
        run_trials([TrialNet("", None, ())])


def test_a_constant_matrix_on_the_left_is_converted() -> None:
    """The layers that are written read the matrix on the right; with shapes for the left, ncnn's process died."""
    attributes = freeze_attributes({"operands": "wx"})
    left = OperatorFeature("MatMul", ((1, 8, 6),), ((1, 5, 6),), ((5, 8),), attributes)
    (trial,) = run_trials([TrialNet(alone_program(left).param or "", None, ((8, 6), (4,)))])
    assert trial.failure == ""
    assert {step.layer.type for step in fragment(left)} <= {"Gemm", "MatMul", "MemoryData"}


def test_a_table_of_positions_is_refused() -> None:
    positions = OperatorFeature("Gather", (IMAGE,), ((1, 8, 2, 2, 8),), ((2, 2),), freeze_attributes({"axis": 2}))
    with pytest.raises(ProfilingError, match="cannot gather entries by a table of positions"):
        fragment(positions)


def test_a_refusal_says_what_the_writer_and_pnnx_say() -> None:
    with pytest.raises(ProfilingError, match=r"kind LpNormalization are not written.*pnnx cannot.*no such layer"):
        fragment(UNIT)


class Unwritten(nn.Module):
    """A transposed convolution: nobody has written layers for it."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.grow = nn.Conv2d(3, 16, 3, 2, 1), nn.ConvTranspose2d(16, 8, 2, 2)
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(F.adaptive_avg_pool2d(self.grow(self.stem(x)), 1).flatten(1))


def test_a_network_with_unwritten_operators_is_written_as_pnnx_writes_it(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = autotailor.compile(Unwritten().eval(), {}, name="unwritten", resolution=16)
    runtime = open_runtime(DEVICE)
    features = [feature for place in net.places(runtime.fusion) for feature in place.operators]
    assert {f.kind for f in features} - set(ncnn_layers.LAYERS) == {"ConvTranspose"}
    assert missing_operators(net, runtime) == ()
    net.export_onnx(net.largest(), tmp_path / "model.onnx")
    runtime.convert(tmp_path / "model.onnx", tmp_path)
    bill = claims(tmp_path / "model.ncnn.param", features, net.input_shape)
    assert bill.complete, (bill.unclaimed, bill.idle)
    program = alone_program(next(f for f in features if f.kind == "ConvTranspose"))
    (trial,) = run_trials([TrialNet(program.param or "", None, program.inputs)])
    assert trial.failure == ""


def test_layers_that_ncnn_cannot_run_are_refused_before_they_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = ncnn_layers.Layer("Reshape", ((0, 7), (1, 7), (2, 7)))
    monkeypatch.setitem(ncnn_layers.LAYERS, "Relu", lambda _: bad)
    relu, tanh = feature("Relu", (IMAGE,), IMAGE), feature("Tanh", (IMAGE,), IMAGE)
    refused = open_runtime(DEVICE).refusals([relu, tanh])
    assert refused.keys() == {relu.id}
    assert "ncnn gives its output the shape [7, 7, 7] instead of [1, 8, 6, 8]" in refused[relu.id]


def test_a_network_that_takes_the_process_down_costs_itself_only() -> None:
    good = TrialNet(param_text(["Input in0 0 1 in0", "ReLU a 1 1 in0 out"]), None, ((4,),))
    bad = TrialNet(good.param, None, ("/nowhere/values.npy",))
    trials = run_trials([good, bad, good])
    assert [trial.failure for trial in trials] == ["", "ncnn ends its process (exit code 1)", ""]
    assert trials[0].shapes == {"in0": (4,), "out": (4,)}


def test_layers_that_the_compiled_runner_does_not_hold_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = tmp_path / "autotailor-runner"
    monkeypatch.setenv("AUTOTAILOR_RUNNER", str(binary))
    monkeypatch.setenv("AUTOTAILOR_RUNNER_AARCH64", str(tmp_path / "none"))
    pad = feature("Pad", (IMAGE,), (1, 8, 7, 8), pads=(0, 0, 0, 0, 0, 0, 1, 0), mode="constant")
    relu = feature("Relu", (IMAGE,), IMAGE)
    board = open_runtime(DeviceConfig.from_section({"name": "board", "transport": "ssh", "address": "board"}))
    binary.write_bytes(b"\x7fELF\0 an older runner that does not say \0")
    assert board.refusals([pad, relu]) == {}
    binary.write_bytes(b"\x7fELF\0autotailor-runner without layers: rnn padding lstm\0more")
    refused = board.refusals([pad, relu])
    assert refused.keys() == {pad.id}
    assert "built without the layers Padding" in refused[pad.id]
    assert open_runtime(DEVICE).refusals([pad, relu]) == {}
