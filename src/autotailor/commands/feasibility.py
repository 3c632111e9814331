"""Whether a device can run a model's whole space: ``python -m autotailor.commands.feasibility``, when a run starts.

Training takes hours and the device is needed behind it. What the device's runtime lacks is found in seconds: the
network is compiled with whatever weights it has (random ones, where it is to be trained), its operators are enumerated
and written. All that happens in a process of its own, because PyTorch would stay in the memory of the caller.
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
"""Exit code of the process where the answer is no: what it prints is the reason."""


class FeasibilityError(AutoTailorError):
    """The network cannot be run on the device."""


def check_operators(config: Mapping[str, Any], compiled: Path | None = None) -> None:
    """Refuses a device whose runtime cannot run every SubNet of a model; nothing is asked of the device itself.

    Args:
        config: the composed configuration (``config.compose``), its sections ``model`` and ``device``.
        compiled: the compiled SuperNet, where it is there already; None: the source is compiled for this question.

    Raises:
        FeasibilityError: everything that the runtime lacks, and which other runtime has it; or the source cannot be
            compiled.
    """
    question = {"model": config["model"], "device": config["device"], "compiled": compiled and str(compiled)}
    done = subprocess.run(
        [sys.executable, "-m", "autotailor.commands.feasibility"],
        input=json.dumps(question),
        stdout=subprocess.PIPE,  # the answer; progress goes where the caller's does
        text=True,
        check=False,
    )
    if done.returncode == REFUSED:
        raise FeasibilityError(done.stdout.strip())
    if done.returncode != 0:
        raise FeasibilityError(
            f"whether {config['device']['name']} can run {config['model']['name']} cannot be told: the process that "
            f"compiles the network ended with exit code {done.returncode}, see above"
        )


def structure(model: Mapping[str, Any]) -> SuperNet:
    """The SuperNet of a model's configuration without its weights: they do not change what it consists of.

    Raises:
        AutoTailorError: the source cannot be compiled into the space.
    """
    import autotailor
    from autotailor.compiler.sources.source import Source, create_network

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
    """Why a device cannot run a model, empty where it can.

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
    """Reads the question as JSON; answers with the exit code, and with the reason."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("autotailor").setLevel(logging.INFO)
    reason = refusal(json.load(sys.stdin))
    print(reason)
    return REFUSED if reason else 0


if __name__ == "__main__":
    sys.exit(main())
