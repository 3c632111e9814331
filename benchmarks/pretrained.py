"""What closed form gives a pretrained network with few pictures, beside slices as they stand. Nothing is trained.

    OMP_NUM_THREADS=1 python benchmarks/pretrained.py FOLDER --csv benchmarks/pretrained.csv
    OMP_NUM_THREADS=1 python benchmarks/pretrained.py FOLDER --case letters
    OMP_NUM_THREADS=1 python benchmarks/pretrained.py FOLDER --alternatives
    OMP_NUM_THREADS=1 python benchmarks/pretrained.py results/resnet_digits --case finished

FOLDER gets the network and the pictures of a case (``given/clipart.py``, 300 MB that are fetched, or
``given/letters.py``), where it does not hold them, or is that of a finished run. The table has, for SubNets that cut
one kind of variable everywhere, MACs as a share of the network's, and the pictures that are right, percent of the
validation and of the test set, and the divergence of answers on the validation pictures from the network's own, in
nats; rows of single modifications are means over all of a kind. Slices as they stand have channels sorted by L1 norms,
and statistics estimated anew; pairs of factors as they stand, with ``--alternatives``, are the singular vectors of the
weights; streams that alternatives write are not rotated. Standard errors are 3 points on the clip art, and less for
differences: all rows see the same pictures.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from given import clipart, finished, letters
from plain_table import plain_table
from rich.console import Console

import autotailor
from autotailor import accuracy, data
from autotailor.accuracy.evaluation import evaluate, percent
from autotailor.accuracy.moments import answers, divergence
from autotailor.data import DataSplits
from autotailor.ir.junctions import OPERATOR
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Choice, Variable

SOLVED, PLAIN = ("validation", "test", "divergence"), "{}_as_it_stands"
COLUMNS = ("cut", "macs", *(name.format(each) for each in SOLVED for name in ("{}", PLAIN)))
CASES = {"clipart": clipart, "letters": letters, "finished": finished}
ALTERNATIVES = {"low_rank": [0.75, 0.5, 0.25], "depthwise": True}
CALIBRATION = accuracy.CalibrationConfig()


def least(variable: Variable) -> Choice:
    """The choice that leaves least."""
    return variable.choices[variable.least]


def next_one(variable: Variable) -> Choice:
    """The choice beside the unmodified one."""
    return variable.choices[variable.default + (1 if variable.least > variable.default else -1)]


def subnets(net: autotailor.SuperNet) -> dict[str, SubNet]:
    """SubNets that cut all variables of one kind, and all of them, by what they cut."""
    found = {"nothing": net.largest()}
    pick: dict[str, Callable[[Variable], Choice]] = {"one step": next_one, "least": least}
    kinds = dict.fromkeys(v.kind for v in net.space if v.kind != OPERATOR)
    for kind in kinds:
        for word, choose in pick.items():
            found[f"{kind}, {word}"] = SubNet.from_assignment(
                net.space, {v.name: choose(v) for v in net.space if v.kind == kind}
            )
    for choice in dict.fromkeys(c for v in net.space if v.kind == OPERATOR for c in v.choices):
        chosen = {v.name: choice for v in net.space if v.kind == OPERATOR and choice in v.choices}
        found[f"operator, {choice}"] = SubNet.from_assignment(net.space, chosen)
    shapes = ("width", "expand_ratio", "kernel_size")
    for word, choose in pick.items():
        chosen = {v.name: choose(v) for v in net.space if v.kind in shapes}
        found[f"widths, ratios and kernels, {word}"] = SubNet.from_assignment(net.space, chosen)
    return {cut: subnet for i, (cut, subnet) in enumerate(found.items()) if subnet not in list(found.values())[:i]}


def singles(net: autotailor.SuperNet) -> Iterator[tuple[str, SubNet]]:
    """Every single modification, with the kind of its variable."""
    for variable in net.space:
        for choice in variable.choices:
            if choice != variable.choices[variable.default]:
                yield variable.kind, SubNet.from_assignment(net.space, {variable.name: choice})


class Reading:
    """A SuperNet that is read as the pipeline reads it: each SubNet with statistics of its own."""

    def __init__(self, net: autotailor.SuperNet, splits: DataSplits) -> None:
        self.module, self.splits = net.module(logits=True).eval(), splits
        self.calibrator = accuracy.Calibrator(splits, CALIBRATION)
        self.pictures = [images for images, _ in splits.validation.batches(64)]
        self.wanted = answers(self.module, net.largest(), self.pictures)

    def right(self, subnet: SubNet) -> tuple[float, float]:
        """Percent of the validation and of the test pictures that a SubNet says right."""
        statistics = self.calibrator.statistics(self.module, subnet)
        of_validation, of_test = (
            percent(evaluate(self.module, subnet, part, statistics).values)
            for part in (self.splits.validation, self.splits.test)
        )
        return of_validation, of_test

    def apart(self, subnet: SubNet) -> float:
        """Divergence of a SubNet's answers from the largest one's on the validation pictures, in nats."""
        statistics = self.calibrator.statistics(self.module, subnet)
        return divergence(answers(self.module, subnet, self.pictures, statistics), self.wanted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--case", choices=sorted(CASES), default="clipart")
    parser.add_argument("--alternatives", action="store_true")
    asked = parser.parse_args()
    source = CASES[asked.case].prepare(asked.folder.resolve())
    splits = data.load(CASES[asked.case].section(asked.folder.resolve()))
    proposed = autotailor.compile(source).space_section()
    given = autotailor.compile(source, proposed | ({"alternatives": ALTERNATIVES} if asked.alternatives else {}))
    solved = accuracy.prepare(given, splits, accuracy.MomentsConfig(), CALIBRATION).net
    plain = accuracy.adopt_statistics(given, splits, CALIBRATION).sort_channels()
    macs = given.macs()
    whole = macs.predict(given.largest().to_array()[None])[0]
    rows: list[tuple[Any, ...]] = []
    nets = [Reading(net, splits) for net in (solved, plain)]
    for cut, subnet in subnets(given).items():
        share = macs.predict(subnet.to_array()[None])[0] / whole
        (validation, test), (val_plain, test_plain) = (net.right(subnet) for net in nets)
        found = [round(value, 1) for value in (validation, val_plain, test, test_plain)]
        rows.append((cut, round(share, 2), *found, *(round(net.apart(subnet), 3) for net in nets)))
        print(*rows[-1], flush=True)
    apart: dict[str, list[tuple[float, ...]]] = {}
    for kind, subnet in singles(given):
        apart.setdefault(kind, []).append(tuple(net.apart(subnet) for net in nets))
    for kind, pairs in apart.items():
        means = (round(float(value), 4) for value in np.mean(pairs, axis=0))
        rows.append((f"{len(pairs)} single modifications of {kind}", *[None] * 5, *means))
        print(*rows[-1], flush=True)
    table = pd.DataFrame(rows, columns=COLUMNS)
    Console(width=160).print(plain_table(table, "Nothing is trained"))
    if asked.csv:
        table.to_csv(asked.csv, index=False)


if __name__ == "__main__":
    main()
