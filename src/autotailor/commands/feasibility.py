"""Checks at the start of a run whether a device can run every SubNet of a model.

Training takes hours, and the device is needed only after training. Whether the device's runtime lacks an operator can
be found in seconds: the network is compiled (with random weights, where it is yet to be trained), and its operators
are enumerated and written for the runtime. The check runs in its own process
(``python -m autotailor.commands.feasibility``), because PyTorch would stay in the memory of the caller.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotailor.ir.errors import AutoTailorError

if TYPE_CHECKING:
    from autotailor.ir.supernet import SuperNet

REFUSED = 3
"""Exit code of the process where the device cannot run the model; the process then prints the reason."""


class FeasibilityError(AutoTailorError):
    """The network cannot be run on the device."""


def check_operators(config: Mapping[str, Any], compiled: Path | None = None) -> None:
    """Refuses a device whose runtime cannot run every SubNet of a model; the device itself is not contacted.

    Args:
        config: the composed configuration (``config.compose``) with its sections ``model`` and ``device``.
        compiled: file of the compiled SuperNet; with None, the model's source is compiled for this check.

    Raises:
        FeasibilityError: the runtime lacks operators, and the message lists them with runtimes that have them; or the
            source cannot be compiled.
    """
    question = {"model": config["model"], "device": config["device"], "compiled": compiled and str(compiled)}
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
        raise FeasibilityError(
            f"device {config['device']['name']}: it is unknown whether it can run {config['model']['name']}, because "
            f"the process that compiles the network ended with exit code {done.returncode}; see its error above"
        )


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
        source = create_network(str(source), pretrained=False)
    return autotailor.compile(
        source,
        model["space"],
        name=model["name"],
        resolution=model["resolution"],
        batch_norm=model.get("batch_norm", "auto"),
    )


def refusal(question: Mapping[str, Any]) -> str:
    """The reason why a device cannot run a model; empty where it can.

    Args:
        question: the sections ``model`` and ``device``, and ``compiled``, the file of the compiled SuperNet or None.
    """
    import autotailor
    from autotailor import profiling

    compiled = question["compiled"]
    try:
        net = autotailor.load(Path(compiled)) if compiled else structure(question["model"])
        profiling.check_writable(net, profiling.DeviceConfig.from_section(question["device"]))
    except AutoTailorError as error:
        return str(error)
    return ""


def main() -> int:
    """Reads the question as JSON from standard input, prints the reason, and returns the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("autotailor").setLevel(logging.INFO)
    reason = refusal(json.load(sys.stdin))
    print(reason)
    return REFUSED if reason else 0


if __name__ == "__main__":
    sys.exit(main())
