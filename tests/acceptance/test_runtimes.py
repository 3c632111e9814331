"""The whole pipeline on this computer with each runtime."""

from pathlib import Path

import pandas as pd
import pytest

from acceptance.pipeline import MODEL, assert_finished, pipeline
from autotailor.statistics import kendall_tau

pytestmark = [pytest.mark.sweep, pytest.mark.timeout(1500)]


@pytest.mark.parametrize("runtime", ["ncnn", "onnxruntime", "torch"])
def test_a_runtime(runtime: str, tmp_path: Path) -> None:
    done = pipeline(tmp_path, tmp_path, "host", [f"device.runtime={runtime}"])
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert_finished(tmp_path, "host")
    validation = pd.read_csv(tmp_path / "results" / MODEL / "host" / "validation.csv")
    assert (validation["predicted_ms"] > 0).all()
    assert (
        kendall_tau(validation["predicted_ms"], validation["measured_ms"]) == 1
    )  # a busy machine makes all slower; the SubNets differ by more than a third
