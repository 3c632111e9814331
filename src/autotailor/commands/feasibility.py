"""Checks at the start of a run whether a model has its space, and whether a device can run every SubNet of it.

Training takes hours, and the network is compiled, and the device needed, only after training. Whether the network
allows the space, and whether the device's runtime lacks an operator, can be found in seconds: the network is compiled
(with random weights, where it is yet to be trained), and its operators are enumerated and written for the runtime. The
check runs in its own process (``python -m autotailor.commands.feasibility``), because PyTorch would stay in the memory
of the caller.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotailor.commands.terminal import say
from autotailor.ir.errors import AutoTailorError

if TYPE_CHECKING:
    from autotailor.ir.supernet import SuperNet

REFUSED = 3
"""Exit code of the process where the model cannot be compiled, or where the device cannot run it.

The process then prints the reason."""
TIMED = 16
"""Images of the training step that is timed."""


class FeasibilityError(AutoTailorError):
    """The network cannot be compiled, or cannot be run on the device."""


def check_operators(config: Mapping[str, Any], compiled: Path | None = None) -> str:
    """Refuses a device whose runtime cannot run every SubNet of a model; the device itself is not contacted.

    Args:
        config: the composed configuration (``config.compose``).
        compiled: file of the compiled SuperNet; with None, the model's source is compiled for this check.

    Returns:
        What the training of the candidates costs at most, as a sentence from a timed step; empty where the
        configuration knows a number of epochs alone.

    Raises:
        FeasibilityError: the runtime lacks operators, and the message lists them with runtimes that have them; or the
            source cannot be compiled.
    """
    question = {"model": config["model"], "device": config["device"], "compiled": compiled and str(compiled)}
    timed = _counts_images(config)
    said = _ask({**question, "timed": timed})
    return cost_of_training(config, float(said)) if timed else ""


def cost_of_training(config: Mapping[str, Any], seconds: float) -> str:
    """What the training of the candidates costs at most, as a sentence; empty where only a number of epochs is known.

    Args:
        config: the composed configuration with its sections ``recipe``, ``polish`` and ``export``.
        seconds: that one image takes in a training step of the largest SubNet, on one thread.
    """
    if not _counts_images(config):
        return ""
    rounds, budgets = config["polish"]["rounds"], config["export"]["budgets"]
    count = budgets if isinstance(budgets, int) else len(budgets)
    images = sum(each["candidates"] * each["images"] for each in rounds) * count
    threads = config["polish"]["threads"] * config["polish"]["workers"]
    longest = timedelta(seconds=60 * max(1, round(images * seconds / threads / 60)))
    return (
        f"Recipe {config['recipe']['name']}: {count * rounds[0]['candidates']} SubNets are trained, each with "
        f"{sum(each['images'] for each in rounds):,} images or a few more, in {longest} at most on {threads} threads "
        f"(one step, timed); beside that single modifications are evaluated, and operators measured"
    )


def _counts_images(config: Mapping[str, Any]) -> bool:
    """Whether candidates are trained, for numbers of images that the configuration says."""
    rounds = config.get("polish", {}).get("rounds") or ()
    return bool(rounds) and all(each.get("images") for each in rounds)


def check_space(config: Mapping[str, Any], compiled: Path | None = None) -> None:
    """Refuses a network that cannot be compiled into its space, or has no place for its exits, before any work.

    Args:
        config: the composed configuration (``config.compose``) with its section ``model``.
        compiled: see ``check_operators``.

    Raises:
        FeasibilityError: the source cannot be compiled; the message is that of the rule ``compile``.
    """
    _ask({"model": config["model"], "device": None, "compiled": compiled and str(compiled), "timed": False})


def _ask(question: Mapping[str, Any]) -> str:
    """What a process of its own says of a question; raises FeasibilityError with the reason for a refusal."""
    done = subprocess.run(
        [sys.executable, "-m", "autotailor.commands.feasibility"],
        input=json.dumps(question),
        stdout=subprocess.PIPE,  # the reason; progress goes to the caller's standard error
        text=True,
        check=False,
    )
    if done.returncode == REFUSED:
        raise FeasibilityError(done.stdout.strip())
    if done.returncode != 0:
        device, model = question["device"], question["model"]["name"]
        unknown = f"model {model}: it is unknown whether it has its space"
        if device is not None:
            unknown = f"device {device['name']}: it is unknown whether it can run {model}"
        raise FeasibilityError(
            f"{unknown}, because the process that compiles the network ended with exit code {done.returncode}; see its "
            f"error above"
        )
    return done.stdout


def structure(model: Mapping[str, Any]) -> SuperNet:
    """The SuperNet of a model's configuration with random weights, because weights do not change its operators.

    Raises:
        AutoTailorError: the source cannot be compiled into the space.
    """
    import autotailor
    from autotailor.compiler.sources.network import create_network
    from autotailor.compiler.sources.source import Source

    source: Source = model["source"]
    if not str(source).endswith(".onnx"):
        source = create_network(str(source), pretrained=False, num_classes=model["num_classes"])
    return autotailor.compile(
        source,
        model["space"],
        name=model["name"],
        resolution=model["resolution"],
        batch_norm=model.get("batch_norm", "auto"),
        num_classes=model["num_classes"],
        output=model.get("output"),
    )


def examined(question: Mapping[str, Any]) -> tuple[str, SuperNet | None]:
    """The reason why a device cannot run a model, or why it cannot be compiled, empty where it can; and the network.

    Args:
        question: the sections ``model`` and ``device`` (None: no device is asked about), and ``compiled``, the file of
            the compiled SuperNet or None.
    """
    import autotailor
    from autotailor import profiling
    from autotailor.compiler import check, numbers
    from autotailor.exits.config import ExitsConfig
    from autotailor.exits.heads import check_places

    compiled = question["compiled"]
    try:
        net = autotailor.load(Path(compiled)) if compiled else structure(question["model"])
        if (exits_section := question["model"]["space"].get("exits")) is not None:
            exits = ExitsConfig.from_section(exits_section)
            check_places(net, exits.after, exits.head)
        if question["device"] is not None:
            profiling.check_writable(net, profiling.DeviceConfig.from_section(question["device"]))
        else:
            check.check_space(net)
            numbers.check_numbers(net)
    except AutoTailorError as error:
        return str(error), None
    return "", net


def seconds_of_training(net: SuperNet, images: int = TIMED) -> float:
    """Seconds that one image takes in a training step of the largest SubNet, whose like teaches, on one thread.

    Args:
        net: with any weights.
        images: of the step; a step before is not timed, because PyTorch prepares its kernels in it.
    """
    import torch

    from autotailor.ir.execution.modules.graph import tensors

    torch.set_num_threads(1)
    module, shape = net.module(logits=True).eval(), net.graph.shapes[net.graph.input]
    batch, spent = torch.rand(images, *shape[1:]), 0.0
    for _ in range(2):
        begun = time.perf_counter()
        with torch.no_grad():
            taught = tensors(module(batch))
        apart = zip(tensors(module(batch)), taught, strict=True)
        torch.autograd.backward([(own - wanted).square().mean() for own, wanted in apart])
        spent = time.perf_counter() - begun
    return spent / images


def main() -> int:
    """Reads the question as JSON from standard input; prints the reason, or the seconds where these are asked for."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("autotailor").setLevel(logging.INFO)
    question = json.load(sys.stdin)
    reason, net = examined(question)
    say(seconds_of_training(net) if net is not None and question["timed"] else reason)
    return REFUSED if reason else 0


if __name__ == "__main__":
    sys.exit(main())
