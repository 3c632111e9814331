"""Tries which runtimes can run which classifiers: every operator is tried, and whole networks are converted.

    python benchmarks/runtimes.py                          # every network of the list that has no row yet
    python benchmarks/runtimes.py --again                  # all of them anew
    python benchmarks/runtimes.py edgenext_xx_small        # some of timm's

Each network has random weights of order 1, and small images if it takes images of any size. It is compiled without a
space, in a process of its own. A network's row has, for each runtime, the kinds of operators that the runtime lacks
(empty if it can run all of the network); the kinds for which no ncnn layer is written and that pnnx converts; and the
largest error of pnnx's conversion of the whole network against onnxruntime, relative to the largest logit. A row is
written to ``runtimes.csv`` beside this file as soon as it is known.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import autotailor
from autotailor.ir.errors import AutoTailorError
from autotailor.profiling import DeviceConfig, open_runtime
from autotailor.profiling.runtimes.ncnn import layers as ncnn_layers

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from acceptance import checks, classifiers

TABLE = Path(__file__).with_suffix(".csv")
SIDE = 128
"""Side of the images, in pixels, for networks that take images of any size."""
NETWORKS = (
    "resnet18", "resnetv2_50", "resnest14d", "skresnet18", "res2net50_26w_4s", "cspresnet50", "gernet_s", "repvgg_a0",
    "regnetx_002", "regnety_004", "nf_regnet_b0", "densenet121", "dpn68", "ese_vovnet19b_dw", "hrnet_w18_small",
    "hgnetv2_b0", "mobilenetv4_conv_small", "mixnet_s", "tinynet_e", "rexnet_100", "ghostnet_100", "mobileone_s0",
    "starnet_s1", "convnextv2_atto", "inception_next_atto", "mambaout_femto", "poolformer_s12", "poolformerv2_s12",
    "caformer_s18", "edgenext_xx_small", "efficientvit_b0", "efficientvit_m0", "repvit_m0_9", "swiftformer_xs",
    "efficientformerv2_s0", "shvit_s1", "mobilevit_xxs", "mobilevitv2_050", "levit_128s", "vit_tiny_patch16_224",
    "xcit_nano_12_p16_224", "tiny_vit_5m_224", "swin_tiny_patch4_window7_224", "mixer_s32_224",
)  # fmt: skip
"""Models of timm, one from each family that timm's small image classifiers belong to."""


def examine(name: str) -> dict[str, Any]:
    """Compiles a network of timm; returns its row."""
    torch.set_num_threads(1)
    network = classifiers.create(f"timm:{name}")
    own = int(network.pretrained_cfg["input_size"][1])
    fixed = bool(network.pretrained_cfg.get("fixed_input_size"))
    return row_of(_compiled(network, name, [own] if fixed else [SIDE, own]))


def row_of(net: autotailor.SuperNet) -> dict[str, Any]:
    """The row of a compiled network: what each runtime lacks, and the error of its conversion."""
    row: dict[str, Any] = {"resolution": net.input_shape[-1]}
    for runtime in ("ncnn", "onnxruntime"):
        opened = open_runtime(DeviceConfig(runtime, runtime=runtime))
        features = net.operators(fusion=opened.fusion)
        refused = opened.refusals(features)
        row[runtime] = " ".join(sorted({feature.kind for feature in features if feature.id in refused}))
        if runtime == "ncnn":
            row["operators"] = len(features)
            row["converted"] = " ".join(sorted({f.kind for f in features} - set(ncnn_layers.LAYERS)))
    row["conversion"] = conversion(net)
    return row


def _compiled(network: torch.nn.Module, name: str, sides: list[int]) -> autotailor.SuperNet:
    """The SuperNet for images of the first of some sizes that the network takes."""
    for side in sides:
        try:
            return autotailor.compile(network, {}, name=name, resolution=side)
        except AutoTailorError:
            if side == sides[-1]:
                raise
    raise AssertionError


def conversion(net: autotailor.SuperNet) -> str:
    """Largest relative error of the network that pnnx converts as a whole; ``none`` where the conversion fails."""
    runtime = open_runtime(DeviceConfig("ncnn"))
    image = np.random.default_rng(0).random(net.input_shape, dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        net.export_onnx(net.largest(), directory / "model.onnx")
        session = open_runtime(DeviceConfig("onnxruntime", runtime="onnxruntime"))
        try:
            runtime.convert(directory / "model.onnx", directory)
            found = runtime.run(directory, image)
        except AutoTailorError:
            return "none"
        return f"{checks.relative(found, session.run(directory, image)):.0e}"


def main() -> None:
    """Examines missing networks; writes and prints a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=[], help="names of timm's models")
    parser.add_argument("--again", action="store_true", help="also networks that have a row")
    parser.add_argument("--table", type=Path, default=TABLE)
    arguments = parser.parse_args()
    table = pd.read_csv(arguments.table, keep_default_na=False) if arguments.table.exists() else pd.DataFrame()
    known = set() if table.empty else set(table["network"])
    for name in arguments.networks or [each for each in NETWORKS if arguments.again or each not in known]:
        start = time.perf_counter()
        try:
            with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
                row = pool.submit(examine, name).result()
        except Exception as error:
            row = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
        row = {"network": name, **row, "seconds": round(time.perf_counter() - start)}
        others = table[table["network"] != name] if not table.empty else table
        table = pd.concat([others, pd.DataFrame([row])], ignore_index=True).fillna("")
        table.to_csv(arguments.table, index=False)
        print(row, flush=True)


if __name__ == "__main__":
    main()
