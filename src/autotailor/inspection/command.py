"""``python -m autotailor inspect SOURCE``: blocks, stages, variables, counts, and static parts with reasons."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml  # type: ignore[import-untyped]

from autotailor.ir.errors import AutoTailorError

if TYPE_CHECKING:
    from autotailor.ir.supernet import SuperNet

TIMM = "timm:"


class InspectionError(AutoTailorError):
    """The command line asks for something that cannot be inspected."""


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``inspect`` to the commands."""
    parser = commands.add_parser(
        "inspect",
        help="show what can change in a network",
        description="Compiles a network and prints its blocks, stages, variables and static parts. "
        "Without --space, a space is proposed.",
    )
    parser.add_argument("source", help="an .onnx file, timm:NAME, or package.module:factory")
    parser.add_argument("--space", type=Path, metavar="FILE", help="YAML with a space section (conf/model/*.yaml)")
    parser.add_argument("--yaml", action="store_true", help="print a configuration to edit instead of tables")
    parser.add_argument("--resolution", type=int, metavar="PIXELS", help="side of the images, for a PyTorch source")
    parser.add_argument(
        "--batch-norm",
        choices=("auto", "reinsert", "keep"),
        default="auto",
        help="where BatchNorm has been folded into the weights of a file: put it back where the file records that, "
        "behind every convolution with a bias, or nowhere",
    )
    weights = parser.add_mutually_exclusive_group()
    weights.add_argument("--weights", type=Path, metavar="FILE", help="a checkpoint (.pt, .safetensors) of the source")
    weights.add_argument(
        "--random-weights", action="store_true", help="do not fetch the weights of timm:NAME; the structure is the same"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Compiles and prints.

    Raises:
        AutoTailorError: what is wrong with the source or the space, in one sentence.
    """
    section = None if options.space is None else read_space(options.space)
    net = _compile(options, section)
    if options.yaml:
        print(model_configuration(net, options), end="")
        return
    from autotailor.inspection.tables import print_inspection

    print_inspection(net, proposed=section is None)
    if options.random_weights:
        print("Random weights: the structure is the same as that of the trained network, the accuracy is not.")


def _compile(options: argparse.Namespace, section: Mapping[str, Any] | None) -> SuperNet:
    import autotailor
    from autotailor.compiler.library import reason
    from autotailor.compiler.sources import create_network

    source: Any = options.source
    if options.resolution is not None and options.resolution < 1:
        raise InspectionError(f"--resolution {options.resolution}: the side of an image is at least 1 pixel")
    if options.random_weights:
        if not source.startswith(TIMM):
            raise InspectionError(f"--random-weights is for {TIMM}NAME; {source} says itself what its weights are")
        source = create_network(source, pretrained=False)
    name = options.source.removeprefix(TIMM) if options.random_weights else None
    try:
        return autotailor.compile(
            source,
            section,
            name=name,
            resolution=options.resolution,
            weights=options.weights,
            batch_norm=options.batch_norm,
        )
    except AutoTailorError:
        raise
    except Exception as error:
        raise InspectionError(
            f"{options.source} cannot be compiled: {type(error).__name__}: {reason(error)}; to see where it happens, "
            f"call autotailor.compile({options.source!r}) in Python"
        ) from error


def read_space(path: Path) -> Mapping[str, Any]:
    """The ``space`` section of a YAML file, or the whole file where it is nothing else.

    Raises:
        InspectionError: the file is missing, is no YAML, or holds no mapping.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InspectionError(f"--space {path}: cannot be read ({error}); name a YAML file") from error
    except yaml.YAMLError as error:
        raise InspectionError(f"--space {path}: is no YAML: {' '.join(str(error).split())}") from error
    section = document.get("space", document) if isinstance(document, Mapping) else document
    if not isinstance(section, Mapping):
        raise InspectionError(f"--space {path}: expected a section such as `space: {{depth: [0, 1]}}`")
    return section


def model_configuration(net: SuperNet, options: argparse.Namespace) -> str:
    """A file for ``conf/model`` whose space is that of the network."""
    model = {
        "name": re.sub(r"\W+", "_", net.name).strip("_").lower() or "mine",
        "source": options.source,
        "weights": None if options.weights is None else str(options.weights),
        "resolution": net.input_shape[-1],
        "num_classes": net.num_classes,
        "pretrain": None,
        **({} if options.batch_norm == "auto" else {"batch_norm": options.batch_norm}),
        "space": net.space_section(),
    }
    command = " ".join(("python -m autotailor inspect", options.source, "--yaml"))
    header = (
        f"# From `{command}`: {net.space.num_modifications} modifications, {net.space.num_distinct:.3g} SubNets.\n"
        "# depth: blocks removed from the end of a stage; width: ratios of a stage's width; blocks: by kind, or by\n"
        "# name where one differs; skip: variables to leave alone. What is not listed stays as it is.\n"
    )
    return header + str(yaml.safe_dump(model, default_flow_style=None, sort_keys=False, width=100, allow_unicode=True))
