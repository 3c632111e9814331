"""``python -m autotailor doctor --device NAME``: one line for each check, a remedy for each failure.

``--accelerator`` examines what trains networks, and not a device that they are tailored for.
"""

from __future__ import annotations

import argparse
from pathlib import Path, PurePosixPath

from autotailor.commands import answer
from autotailor.commands.terminal import given_path
from autotailor.ir.errors import AutoTailorError


class DoctorError(AutoTailorError):
    """A device failed a check."""


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``doctor`` to the commands."""
    parser = commands.add_parser(
        "doctor",
        help="check a device before measuring on it",
        description="Checks whether a device can be reached and measured on, in seconds; or, in about eight minutes, "
        "whether networks can be trained and evaluated on this machine's accelerator. Exit code 1 after a failure.",
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--device", metavar="NAME", help="a file of conf/device")
    which.add_argument(
        "--accelerator",
        nargs="?",
        const="auto",
        metavar="NAME",
        help="what trains networks on this machine: auto (the default), cuda, cuda:1, mps or cpu",
    )
    parser.add_argument("--tiny", action="store_true", help="of --accelerator: a small network, in seconds")
    parser.add_argument(
        "--output", type=given_path, default=Path("accelerator.json"), metavar="FILE", help="JSON of --accelerator"
    )
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="as in a run: device.cores=[0]")
    parser.add_argument("--conf", type=given_path, metavar="FOLDER", help="the configuration (conf)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--sysfs", type=PurePosixPath, default=PurePosixPath("/sys"), help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Checks the device and prints the findings, as a table or as JSON.

    Raises:
        ConfigError: the device is unknown, or an override is invalid.
        DoctorError: a check failed.
    """
    if options.accelerator:
        from autotailor.commands.doctor.accelerator.examination import check

        check(options.accelerator, options.output, tiny=options.tiny)
        return
    from autotailor import config
    from autotailor.commands.doctor.examination import examine
    from autotailor.commands.doctor.finding import Verdict, print_findings
    from autotailor.profiling.device import DeviceConfig

    conf = config.conf_folder(options.conf)
    section = config.compose(conf, None, options.device, options.settings)["device"]
    device = DeviceConfig.from_section(section)
    if options.json:
        with answer.only_the_answer(options):
            findings = list(examine(device, options.sysfs))
        answer.print_json({"device": device.name, "checks": [finding.to_dict() for finding in findings]})
    else:
        findings = print_findings(device.name, examine(device, options.sysfs))
    failed = [finding.check for finding in findings if finding.verdict is Verdict.FAILED]
    if failed:
        where = "the JSON object" if options.json else "the table"
        raise DoctorError(f"device {device.name} failed: {', '.join(failed)}; {where} names the remedies")
