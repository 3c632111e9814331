"""The manifest that the compiled runner (``src/runner``) reads: the same programs and settings, line by line.

Example::

    autotailor-runner 4
    run 5f0c...
    option use_fp16_storage 0
    threads 1
    batch 0.5 8 8 0.1
    program 1f0c...
    input 48 14 14
    input 4
    short c1
    long c5
    copies 1 5
    param 14
    7767517
    ...
    end

The compiled runner prints the same JSON lines as ``loop.py``, so that ``Session`` reads the lines of both.
"""

from collections.abc import Mapping
from typing import Any

from autotailor.profiling.errors import ProfilingError

FIRST_LINE, LAST_LINE = "autotailor-runner 4", "end"


def manifest_text(manifest: Mapping[str, Any], run: str = "0") -> str:
    """Writes a manifest, which ``Session`` makes for the runner in Python, in the compiled runner's syntax.

    Args:
        manifest: ``settings`` and ``batches``. Each batch has ``seconds``, ``least_passes``, ``blocks``, ``programs``,
            and perhaps ``anchor_share``, the share of a pass's time that the first program gets. A manifest may also
            have ``memory``, a program whose peak memory is wanted.
        run: the run's name. The journal on the device belongs to one text, so that the same name resumes a run and
            another name measures anew.

    Raises:
        ProfilingError: a name or a path holds a line break.
    """
    settings = manifest["settings"]
    lines = [FIRST_LINE, _line("run", run)]
    lines += [f"option {name} {int(on)}" for name, on in settings["options"].items()]
    lines += [f"{name} {settings[name]}" for name in ("threads", "warmup", "runs", "walks", "settle_ms", "evict_mb")]
    lines += [f"core {core}" for core in settings["cores"]]
    if "memory" in manifest:
        lines += _program(manifest["memory"], "watch")
    for batch in manifest["batches"]:
        share = batch.get("anchor_share", 0.0)
        lines.append(f"batch {batch['seconds']} {batch['least_passes']} {batch['blocks']} {share}")
        for program in batch["programs"]:
            lines += _program(program)
    return "\n".join([*lines, LAST_LINE]) + "\n"


def _program(program: Mapping[str, Any], word: str = "program") -> list[str]:
    """The lines of one program, followed by the lines of its parts."""
    lines = [_line(word, program["key"])]
    lines += ["input " + " ".join(str(size) for size in shape) for shape in program["inputs"]]
    lines += [_line(name, program[name]) for name in ("short", "long", "param_path", "bin_path") if program[name]]
    lines += [_line("step", blob) for blob in program["steps"]]
    lines.append("copies {} {}".format(*program["copies"]))
    if program["param"]:
        text = program["param"].splitlines()
        lines += [f"param {len(text)}", *text]
    for part in program["parts"]:
        lines += _program(part, "part")
    return lines


def _line(word: str, value: str) -> str:
    if "\n" in value or "\r" in value:
        raise ProfilingError(f"the runner's manifest cannot hold a line break: {word} {value!r}")
    return f"{word} {value}"
