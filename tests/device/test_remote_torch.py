"""PyTorch on a board over SSH: its own interpreter runs our two files."""

import shutil
import sys
from pathlib import Path

import pytest

from autotailor.profiling import DeviceConfig, DeviceError, Store, check, measure_rounds, open_runtime, profile
from device.ssh_server import SshServer
from features import FEATURES

OPERATORS = [FEATURES[name] for name in ("stem", "gate")]


def config(board: SshServer, folder: Path, **options: object) -> DeviceConfig:
    section = {"name": "board", "transport": "ssh", "address": board.address, "folder": str(folder)}
    section |= {
        "runtime": "torch",
        "warmup": 1,
        "evict_mb": 0,
        "energy_seconds": 0,
        "precision_target": 0.9,
        "min_minutes": 0,
        "drift": 10,
    }
    return DeviceConfig.from_section(section | {"options": {"python": sys.executable, **options}})


def test_operators_and_networks(board: SshServer, tmp_path: Path) -> None:
    device = config(board, tmp_path / "files")
    check(device)
    lut = profile(OPERATORS, device, tmp_path / "store")
    assert {feature.id for feature in OPERATORS} < set(lut.latencies())
    (measured,) = Store(tmp_path / "store").devices()
    assert measured.fingerprint.facts["runtime"]["python"] == "{}.{}".format(*sys.version_info[:2])
    assert "python" not in measured.fingerprint.facts["runtime"]["options"]
    kept = sorted(path.name.partition("-")[2] for path in (tmp_path / "files" / "kept").iterdir())
    assert kept == ["loop.py", "runner.py"]
    assert [path.name for path in (tmp_path / "files").iterdir()] == ["kept"]


def test_a_whole_network(board: SshServer, tmp_path: Path) -> None:
    import autotailor

    device = config(board, tmp_path / "files")
    net = autotailor.compile("autotailor.zoo:mobilenet_digits", resolution=32)
    net.export_onnx(net.smallest(), tmp_path / "model.onnx")
    open_runtime(device).convert(tmp_path / "model.onnx", tmp_path / "net")
    shape = net.shapes(net.smallest())[net.graph.input]
    ((found,),) = measure_rounds({"smallest": (tmp_path / "net", shape)}, device, 1, seconds_each=0.05)
    assert found.latency_ms > 0


def test_a_board_without_pytorch_is_told_what_it_lacks(board: SshServer, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{Path(shutil.which("python3") or sys.executable).resolve()}" -I -S "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(
        DeviceError, match=r"board: .*cannot run PyTorch there \(.*No module named.*device.options.python"
    ):
        profile(OPERATORS, config(board, tmp_path / "files", python=str(bare)), tmp_path / "store")


def test_cuda_that_the_board_has_not_is_refused(board: SshServer, tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this computer stands for the board, and it has CUDA")
    device = config(board, tmp_path / "files", device="cuda")
    check(device)
    with pytest.raises(DeviceError, match=r"finds no CUDA there; set device\.options\.device=cpu"):
        profile(OPERATORS, device, tmp_path / "store")
