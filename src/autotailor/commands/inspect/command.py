"""``python -m autotailor inspect SOURCE``: blocks, stages, variables, counts, and static parts with reasons."""

from __future__ import annotations

import argparse
import io
import math
import sys
from collections.abc import Mapping
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml  # type: ignore[import-untyped]

from autotailor.commands.terminal import given_path, say
from autotailor.data.labels import EMBEDDING, REGRESSION
from autotailor.ir.errors import AutoTailorError

if TYPE_CHECKING:
    from autotailor.commands.inspect.own_data import OwnData
    from autotailor.commands.inspect.own_signals import OwnSignals
    from autotailor.ir.supernet import SuperNet
    from autotailor.profiling.device import DeviceConfig

TIMM = "timm:"


class InspectionError(AutoTailorError):
    """The options of ``inspect`` are invalid, or the source cannot be inspected."""


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``inspect`` to the commands."""
    parser = commands.add_parser(
        "inspect",
        help="show what can change in a network",
        description="Compiles a network and prints its blocks, stages, variables and static parts. "
        "Without --space, a space is proposed.",
    )
    parser.add_argument("source", help="an .onnx file, timm:NAME, or package.module:factory")
    parser.add_argument(
        "--space", type=given_path, metavar="FILE", help="YAML with a space section (conf/model/*.yaml)"
    )
    parser.add_argument("--yaml", action="store_true", help="print a configuration to edit instead of tables")
    parser.add_argument("--resolution", type=int, metavar="PIXELS", help="side of the images, for a PyTorch source")
    parser.add_argument(
        "--batch-norm",
        choices=("auto", "reinsert", "keep"),
        default="auto",
        help="where to put BatchNorm back that was folded into the weights of a file: where the file records the "
        "folding, behind every convolution with a bias, or nowhere",
    )
    parser.add_argument(
        "--output",
        type=lambda given: given.split(",") if "," in given else given,
        metavar="NAME",
        help="the output to keep, where the network returns several; or names of several with commas between them",
    )
    weights = parser.add_mutually_exclusive_group()
    weights.add_argument(
        "--weights", type=given_path, metavar="FILE", help="a checkpoint (.pt, .safetensors) of the source"
    )
    weights.add_argument(
        "--random-weights", action="store_true", help="do not fetch the weights of timm:NAME; the structure is the same"
    )
    parser.add_argument(
        "--data",
        type=given_path,
        metavar="PATH",
        help="your pictures: a folder with one folder per class, or with images/ and masks/, or with COCO files of "
        "boxes, or without folders where they have no labels; or a .csv file that names each picture (file) with 0 or "
        "1 for each label, or a COCO file; or signals: an .npz file or a folder of .npy files, or of recordings (.wav, "
        ".csv) with one folder per class: checks them, and adds them to --yaml",
    )
    parser.add_argument(
        "--task",
        choices=(EMBEDDING, REGRESSION),
        help="what the network does, where its data do not say it: returns numbers (regression: the columns of a .csv "
        "file, or y of arrays, are numbers), or vectors (embedding: pictures of one class should be neighbours)",
    )
    for name, what in (("--mean", "mean"), ("--std", "standard deviation")):
        parser.add_argument(
            name,
            type=float,
            nargs="+",
            metavar="NUMBER",
            help=f"{what} of each channel that the network was trained with; red, green and blue from 0 to 1",
        )
    parser.add_argument(
        "--device", metavar="NAME", help="a file of conf/device: checks that its runtime can run every operator"
    )
    parser.add_argument("--conf", type=given_path, metavar="FOLDER", help="the configuration (conf)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Compiles the network and prints the findings.

    Raises:
        AutoTailorError: the source, the space, the pictures or the options are invalid.
    """
    from autotailor.commands.inspect.own_data import OwnData
    from autotailor.commands.inspect.own_signals import OwnSignals
    from autotailor.ir.dimensions.dimension import RESOLUTION

    section = None if options.space is None else read_space(options.space)
    device = None if options.device is None else _device(options)
    # A factory or a network of the user's may print, and with --yaml the output is a file that holds nothing else.
    with redirect_stdout(sys.stderr) if options.yaml else nullcontext():
        own = _own_data(options)
        net = _compile(options, section, own)
        if (own is not None or options.yaml) and not isinstance(own, OwnSignals):
            _check_pictures(net, options.source)
        if section is None and isinstance(own, OwnData) and own.files and RESOLUTION in net.space.positions:
            net = _compile(options, {**net.space_section(), RESOLUTION: []}, own)  # configuration.SIDES says why
        if own is not None:
            shapes = [net.input_shape] if isinstance(own, OwnSignals) else net.output_shapes
            own = own.for_network(options.source, _outputs(net, options.task), net.graph.outputs, shapes)
        if options.yaml and device is not None:
            _check_runtime(net, device)
        configuration = _configuration(net, options, own) if options.yaml else ""
    if options.yaml:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # runs read the file so, whatever the terminal's encoding is
        print(configuration, end="")  # a file, whose paths are what they are
        return
    from autotailor.commands.inspect.backgrounds import transparent_lines
    from autotailor.commands.inspect.tables import print_inspection

    print_inspection(net, proposed=section is None, task=options.task or "")
    if own is not None:
        own.verify()
        say("\n".join(own.summary([] if isinstance(own, OwnSignals) else transparent_lines(own, net, options))))
    if options.random_weights:
        say("Random weights: the structure is that of the trained network, but the accuracy is not.")
    if device is not None:
        _check_runtime(net, device)
        say(f"Device {device.name}: its runtime {device.runtime} can run every operator.")


def _outputs(net: SuperNet, task: str | None) -> int:
    """How many classes a network knows, or numbers it returns; 0 where it returns something else."""
    is_one = task == REGRESSION and len(net.output_shapes) == 1
    return net.num_classes or (math.prod(net.output_shapes[0][1:]) if is_one else 0)


def _check_pictures(net: SuperNet, source: str) -> None:
    """Refuses a network of other than square RGB images, which no run of the workflow can train on pictures."""
    _, channels, height, width = net.input_shape
    if channels != 3 or net.graph.given.is_series:
        what = "signals" if net.graph.given.is_series else f"images of {channels} channels"
        raise InspectionError(
            f"{source} takes {what}, and pictures are read as RGB: name arrays with --data (an .npz file, see "
            f"docs/guides/signals.md)"
            + (
                "; or export the network behind x.mean(1, keepdim=True), which makes grey of RGB"
                if channels == 1
                else ""
            )
        )
    if height != width:
        is_file = source.endswith(".onnx")
        remedy = "export it for square images, or with dynamic sides and" if is_file else "for another side"
        raise InspectionError(
            f"{source} takes images of {height} x {width} pixels, and a run prepares square pictures: {remedy} give "
            f"--resolution PIXELS"
        )


def _device(options: argparse.Namespace) -> DeviceConfig:
    """The device of ``--device``; raises ConfigError where ``conf/device`` has no such file."""
    from autotailor import config
    from autotailor.profiling.device import DeviceConfig

    conf = config.conf_folder(options.conf)
    return DeviceConfig.from_section(config.compose(conf, None, options.device)["device"])


def _check_runtime(net: SuperNet, device: DeviceConfig) -> None:
    """Raises ProfilingError where the device's runtime cannot run every operator of the network's space."""
    from autotailor.profiling import check_writable

    check_writable(net, device)


def _own_data(options: argparse.Namespace) -> OwnData | OwnSignals | None:
    """The data of ``--data``; refuses ``--mean`` and ``--std`` where they are invalid or no data are given."""
    if (options.mean is None) != (options.std is None):
        raise InspectionError("--mean and --std belong together: give both, or neither")
    from autotailor.commands.inspect.own_signals import is_signals, read_own_signals

    if options.data is not None and is_signals(options.data):
        return read_own_signals(options.data, options.mean, options.std, options.task or "")
    if options.mean and len(options.mean) != 3:
        raise InspectionError(f"--mean {options.mean}: pictures have three channels, red, green and blue")
    if options.mean and not (min(options.std) > 0 and min(options.mean) >= 0 and max(options.mean + options.std) <= 1):
        raise InspectionError(
            f"--mean {options.mean} --std {options.std}: both must be for pixels between 0 and 1, and deviations above "
            f"0; divide numbers for pixels up to 255 by 255"
        )
    if options.data is None:
        if options.mean:
            raise InspectionError("--mean and --std go into the data section: name the pictures with --data FOLDER")
        if options.task:
            raise InspectionError("--task goes into the data section: name the pictures or signals with --data PATH")
        return None
    from autotailor.commands.inspect.own_data import read_own_data

    return read_own_data(options.data, options.task or "")


def _configuration(net: SuperNet, options: argparse.Namespace, own: OwnData | OwnSignals | None) -> str:
    from autotailor.commands.inspect.configuration import model_configuration, whole_configuration

    return model_configuration(net, options) if own is None else whole_configuration(net, options, own)


def _compile(
    options: argparse.Namespace, section: Mapping[str, Any] | None, own: OwnData | OwnSignals | None
) -> SuperNet:
    import autotailor
    from autotailor.compiler.library import reason
    from autotailor.compiler.sources.network import create_network

    source: Any = options.source
    makes_head = not source.endswith(".onnx") and (options.weights is not None or options.random_weights)
    makes_head = makes_head and own is not None and own.kind in ("folder", "table") and own.labels
    makes_head = makes_head and options.task != EMBEDDING
    num_classes = len(own.classes) if own is not None and makes_head else None
    if options.resolution is not None and options.resolution < 1:
        raise InspectionError(f"--resolution {options.resolution}: give a side of at least 1 pixel")
    if options.random_weights:
        if not source.startswith(TIMM):
            raise InspectionError(
                f"--random-weights is only for {TIMM}NAME; {source} has its own weights, leave the option out"
            )
        source = create_network(source, pretrained=False, num_classes=num_classes)
    name = options.source.removeprefix(TIMM) if options.random_weights else None
    try:
        return autotailor.compile(
            source,
            section,
            name=name,
            resolution=options.resolution,
            weights=options.weights,
            batch_norm=options.batch_norm,
            num_classes=num_classes,
            output=options.output,
        )
    except AutoTailorError:
        raise
    except Exception as error:
        raise InspectionError(
            f"{options.source} cannot be compiled: {type(error).__name__}: {reason(error)}; to see the traceback, "
            f"call autotailor.compile({options.source!r}) in Python"
        ) from error


def read_space(path: Path) -> Mapping[str, Any]:
    """The ``space`` section of a YAML file, or the whole file where it has no such section.

    Raises:
        InspectionError: the file is missing, is not YAML, or holds no mapping.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InspectionError(f"--space {path}: cannot be read ({error}); name a YAML file") from error
    except yaml.YAMLError as error:
        raise InspectionError(f"--space {path}: is not YAML: {' '.join(str(error).split())}") from error
    section = document.get("model", document) if isinstance(document, Mapping) else document
    section = section.get("space", section) if isinstance(section, Mapping) else section
    if not isinstance(section, Mapping):
        raise InspectionError(f"--space {path}: expected a section such as `space: {{depth: [0, 1]}}`")
    return section
