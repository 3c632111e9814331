"""Commands: ``autotailor run model=mine``, ``autotailor inspect model.onnx``; ``python -m autotailor`` is the same.

A command is a module with ``add_command``, which adds its parser and names the function that runs it. This function may
return an exit code.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from autotailor import logs
from autotailor.artifacts import disk_trouble
from autotailor.commands import doctor, export, front, new, predict, run, runner, status, why
from autotailor.commands import inspect as inspection
from autotailor.commands import lut as luts
from autotailor.commands import runtime as pools
from autotailor.ir.errors import AutoTailorError

COMMANDS = (new, run, status, inspection, doctor, runner, luts, predict, why, front, export, pools)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: of the command line, without the program; those of the process when None.

    Returns:
        0 after success, 1 after an error, 130 after Ctrl-C, or the exit code of a program that the command has run.
        ``argparse`` itself exits with 2 where the arguments are invalid.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # PyTorch reads it on import; set as in the workflow
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy does
    parser = argparse.ArgumentParser(prog="autotailor", description="One trained network, many devices.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_command(commands)
    own, passed = run.split_passed(sys.argv[1:] if arguments is None else arguments)
    options, unknown = parser.parse_known_args(own)
    if hasattr(options, "settings") and not any(word.startswith("-") for word in unknown):
        options.settings, unknown = [*options.settings, *unknown], []  # argparse takes those before an option alone
    if unknown:  # said by the command itself, whose usage shows what it takes
        hint = run.HINT if own[0] == "run" else ""
        commands.choices.get(own[0], parser).error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    options.passed = passed
    logs.print_what_the_output_knows()
    try:
        return options.run(options) or 0
    except AutoTailorError as error:
        print(f"autotailor: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("autotailor: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has closed it
        sys.stderr.close()
        return 0
    except OSError as error:
        if not (trouble := disk_trouble(error)):
            raise
        print(f"autotailor: {trouble}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
