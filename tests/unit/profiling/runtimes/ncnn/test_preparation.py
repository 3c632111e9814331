"""What pnnx reads only in one form is given to it in that form."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from autotailor.profiling import DeviceConfig, open_runtime
from onnx_text import HEAD, KERNEL, model_of
from reference import run


def test_a_pad_that_leaves_its_defaults_out_is_converted(tmp_path: Path) -> None:
    weights = {"w": KERNEL, "fc": np.eye(4, dtype=np.float32), "pads": np.array([0, 0, 1, 1, 0, 0, 2, 1])}
    model = model_of(f"c = Conv (x, w)  t = Pad (c, pads)  {HEAD}", weights, opset=17)
    (tmp_path / "pad.onnx").write_bytes(model.SerializeToString())
    runtime = open_runtime(DeviceConfig.from_section({"name": "host"}))
    runtime.convert(tmp_path / "pad.onnx", tmp_path)
    image = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)
    np.testing.assert_allclose(runtime.run(tmp_path, image), run(model, image), rtol=1e-4, atol=1e-5)
