"""Writes and changes the text of a ``.param``, which lists a network's layers line by line."""

import itertools
import re
from collections.abc import Mapping, Sequence

from autotailor.profiling.runtimes.ncnn.layers import Fragment

MAGIC = "7767517"


def param_text(lines: list[str]) -> str:
    """A ``.param`` from its layers' lines."""
    blobs = sum(int(line.split()[3]) for line in lines)
    return f"{MAGIC}\n{len(lines)} {blobs}\n" + "\n".join(lines) + "\n"


def operator_lines(steps: Fragment, name: str, reads: Sequence[str], writes: Sequence[str]) -> list[str]:
    """The lines of an operator's layers between the blobs that the operator reads and writes."""
    blobs = {f"i{j}": blob for j, blob in enumerate(reads)} | {f"o{j}": blob for j, blob in enumerate(writes)}
    lines = []
    for number, step in enumerate(steps):
        blobs |= {blob: f"{name}_{blob}" for blob in step.writes if blob not in blobs}
        reading, writing = [blobs[blob] for blob in step.reads], [blobs[blob] for blob in step.writes]
        lines.append(step.layer.line(f"{name}_{number}", reading, writing))
    return lines


def with_names(text: str, image: str, *outputs: str) -> str:
    """A converted network whose input and outputs have further names beside pnnx's ``in0``, and ``out0``, ``out1`` ...

        Input in0 -> ... -> out0        becomes        Input image -> Noop -> in0 -> ... -> out0 -> Noop -> logits

    Several outputs get one ``Noop``, so that whoever asks for one of them by its further name has all computed. An
    earlier one is replaced.

    A ``Noop`` computes nothing. An extractor runs only the layers between the blobs that it is given and asked for, so
    that pnnx's names, which the runner uses, work as before. A blob inside the network that has one of the further
    names gets another name. A further name that is one of pnnx's is left out.

    Args:
        text: of the ``.param`` that pnnx has written.
        image: name of the input; blanks in it become ``_``, because a blank ends a name in a ``.param``.
        outputs: their names.
    """
    read, *written = ("_".join(name.split()) for name in (image, *outputs))
    own = [f"out{number}" for number in range(len(written))]
    further = {read, *written} - {"in0", *own}
    ends = [line for line in text.splitlines()[2:] if not _reads(line, own)]
    lines = [_with_blobs(line, {name: f"{name}.inner" for name in further}) for line in ends]
    if read in further:
        position = next(number for number, line in enumerate(lines) if line.split()[0] == "Input")
        lines[position : position + 1] = [f"Input {read} 0 1 {read}", f"Noop {read}.in0 1 1 {read} in0"]
    if further.issuperset(written) and read not in written:
        count = len(written)
        lines.append(f"Noop {'.'.join(own)}.{written[0]} {count} {count} {' '.join(own)} {' '.join(written)}")
    return param_text(lines)


def named_once(text: str) -> str:
    """A converted network whose reductions name each axis once; ``preparation`` names single ones twice."""
    return re.sub(r"-23303=2,(-?\d+),\1\b", r"-23303=1,\1", text)


def returned(text: str) -> list[str]:
    """Names of the outputs of a network that pnnx has written: ``out0``, ``out1`` ..."""
    blobs = {blob for line in text.splitlines()[2:] for blob in line.split()}
    return list(itertools.takewhile(blobs.__contains__, map("out{}".format, itertools.count())))


def joint_output(text: str) -> str:
    """The name of several outputs whose layer reads them all, which ``with_names`` writes; "" where there is none."""
    own, last = returned(text), text.splitlines()[-1]
    return last.split()[4 + len(own)] if len(own) > 1 and _reads(last, own) else ""


def _reads(line: str, outputs: Sequence[str]) -> bool:
    """Whether a layer is the one that gives several outputs their further names."""
    kind, _, count, _, *blobs = line.split()
    return kind == "Noop" and int(count) > 1 and blobs[: int(count)] == list(outputs)


def _with_blobs(line: str, names: Mapping[str, str]) -> str:
    """A layer's line whose blobs have other names; a line without such blobs stays as it is."""
    words = line.split()
    end = 4 + int(words[2]) + int(words[3])
    blobs = [names.get(blob, blob) for blob in words[4:end]]
    return line if blobs == words[4:end] else " ".join([*words[:4], *blobs, *words[end:]])
