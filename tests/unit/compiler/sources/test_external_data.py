"""Weights in files of their own."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import autotailor
import networks
from autotailor.ir.errors import GraphError


def test_weights_in_files_of_their_own(tmp_path: Path) -> None:
    plain = autotailor.compile(networks.make("resnet"), resolution=32)
    plain.export_onnx(plain.largest(), tmp_path / "whole.onnx")
    model = onnx.load(tmp_path / "whole.onnx")
    plain = autotailor.compile(model)
    onnx.save(model, str(tmp_path / "m.onnx"), save_as_external_data=True, size_threshold=100, location="m.data")
    net = autotailor.compile(tmp_path / "m.onnx")
    assert all(np.array_equal(net.graph.weights[n], w) for n, w in plain.graph.weights.items())
    (tmp_path / "m.data").write_bytes((tmp_path / "m.data").read_bytes()[:1000])
    with pytest.raises(GraphError, match=r"m\.onnx"):
        autotailor.compile(tmp_path / "m.onnx")
    (tmp_path / "m.data").unlink()
    with pytest.raises(GraphError, match=r"m\.onnx"):
        autotailor.compile(tmp_path / "m.onnx")
