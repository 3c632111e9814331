"""Compiles a network, and compares all forms of its SubNets: PyTorch, onnxruntime and ncnn."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import nn
from torchvision.ops import FrozenBatchNorm2d

import autotailor
from autotailor.export.verification import Arrays, arrays, as_arrays, run_onnx
from autotailor.ir.errors import AutoTailorError
from autotailor.profiling import DeviceConfig, open_runtime
from graphs import CASES

TOLERANCE = 1e-4
Row = dict[str, Any]


def network(name: str) -> nn.Module:
    """A network with random weights of such a size that outputs depend on the image, and with statistics."""
    torch.manual_seed(0)
    made = CASES[name].make().eval()
    for module in made.modules():
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.ConvTranspose2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight)
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d | FrozenBatchNorm2d):
            assert module.running_var is not None
            module.running_var.uniform_(0.5, 2.0)
            module.weight.data.uniform_(0.8, 1.2)
    return made


def compiled(name: str) -> autotailor.SuperNet:
    """The SuperNet, without a configuration; what takes no square of three colours is compiled from an ONNX file."""
    shape, made = CASES[name].shape, network(name)
    if shape == (1, 3, shape[-1], shape[-1]):
        return autotailor.compile(made, resolution=shape[-1], name=name)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        torch.onnx.export(made, (torch.zeros(shape),), str(path), dynamo=False)
        return autotailor.compile(path, name=name)


def examined(name: str, count: int, seed: int, minutes: float = math.inf) -> Row:
    """The row of a network, with as many SubNets, and no further one after so many minutes."""
    start = time.perf_counter()
    net = compiled(name)
    kinds = Counter(variable.kind for variable in net.space)
    row: Row = {
        "outputs": len(net.graph.outputs),
        "modifications": net.space.num_modifications,
        "subnets_of_space": f"{float(net.space.num_distinct):.1e}",
        "variables": " ".join(f"{kind}:{number}" for kind, number in sorted(kinds.items())),
        "elastic_share": round(net.elastic_share().elastic, 3),
        "static": "; ".join(sorted({f"{part.kind}: {part.reason}" for part in net.static_parts})),
        "compile_s": round(time.perf_counter() - start, 1),
        "response": round(_response(net), 3),
    }
    rng = random.Random(seed)
    subnets = [net.smallest(), *(net.sample(rng) for _ in range(count - 1))][:count]
    return row | _compared(net, subnets, start + 60 * minutes) | {"seconds": round(time.perf_counter() - start)}


@torch.no_grad()
def _response(net: autotailor.SuperNet) -> float:
    """How much an output of two images differs, relative to its largest number: near 0, errors would say little."""
    whole, generator = net.build(net.largest()), torch.Generator().manual_seed(1)
    one, other = (as_arrays(whole(torch.randn(net.input_shape, generator=generator))) for _ in range(2))
    return min(_apart((y,), (x,)) for y, x in zip(arrays(one), arrays(other), strict=True))


def _compared(net: autotailor.SuperNet, subnets: list[autotailor.SubNet], until: float) -> Row:
    """The largest errors of SubNets in each form until a time, and the first of what went wrong."""
    module, worst, wrong, lacking, count = net.module().eval(), dict[str, float](), list[str](), "", 0
    for subnet in subnets:
        if count and time.perf_counter() > until:
            break
        count += 1
        try:
            errors, said = _errors(net, module.activate(subnet), subnet)
        except Exception as error:  # a mismatch may break any library
            wrong.append(f"{type(error).__name__} {' '.join(str(error).split())[:300]} of {subnet.to_json()}")
            continue
        lacking = lacking or said
        worst |= {form: max(error, worst.get(form, 0.0)) for form, error in errors.items()}
        if not max(errors.values()) <= TOLERANCE:
            wrong.append(f"{errors} of {subnet.to_json()}")
    return {
        "subnets": count,
        "wrong": len(wrong),
        **{f"error_{form}": float(f"{worst[form]:.1e}") for form in worst},
        "ncnn_lacks": lacking,
        "first_wrong": wrong[0] if wrong else "",
    }


def _errors(net: autotailor.SuperNet, module: nn.Module, subnet: autotailor.SubNet) -> tuple[dict[str, float], str]:
    """Errors of a SubNet's forms against the SuperNet's own forward, and why ncnn has no such form."""
    shape = net.shapes(subnet)[net.graph.input]
    image = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    runs: dict[str, Callable[[], Arrays]] = {"torch": lambda: as_arrays(net.build(subnet)(image))}
    with TemporaryDirectory() as name, torch.no_grad():
        folder = Path(name)
        wanted = as_arrays(module(image))
        net.export_onnx(subnet, folder / "model.onnx")
        runs["onnxruntime"] = lambda: run_onnx(folder / "model.onnx")(image.numpy())
        errors = {form: _apart(run(), wanted) for form, run in runs.items()}
        runtime = open_runtime(DeviceConfig.from_section({"name": "graphs"}))
        try:
            runtime.convert(folder / "model.onnx", folder)
            errors["ncnn"] = _apart(runtime.run(folder, image.numpy()), wanted)
        except AutoTailorError as error:
            return errors, " ".join(str(error).split())[:300].replace(str(folder), "the network")
    return errors, ""


def _apart(found: Arrays, wanted: Arrays) -> float:
    """The largest error of an output, relative to its largest number."""
    pairs = zip(arrays(found), arrays(wanted), strict=True)
    return max(float(np.abs(y.reshape(x.shape) - x).max() / np.abs(x).max()) for y, x in pairs)
