"""What closed form gives a pretrained network with few pictures, beside slices as they stand. Nothing is trained.

    OMP_NUM_THREADS=1 python benchmarks/pretrained.py FOLDER --csv benchmarks/pretrained.csv
    OMP_NUM_THREADS=1 python benchmarks/pretrained.py FOLDER --case letters
    OMP_NUM_THREADS=1 python benchmarks/pretrained.py results/resnet_digits --case finished

FOLDER gets the network and the pictures of a case (``given/clipart.py``, 300 MB that are fetched, or
``given/letters.py``), where it does not hold them, or is that of a finished run. The table has, for SubNets that cut
one kind of variable everywhere, MACs as a share of the network's, and the pictures that are right, percent of the
validation and of the test set. Slices as they stand have channels sorted by L1 norms, and statistics estimated anew;
pairs of factors as they stand are the singular vectors of the weights. Standard errors are 3 points on the clip art,
and less for differences: all rows see the same pictures.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from given import clipart, finished, letters
from plain_table import plain_table
from rich.console import Console

import autotailor
from autotailor import accuracy, data
from autotailor.accuracy.evaluation import evaluate, percent
from autotailor.data import DataSplits
from autotailor.ir.junctions import OPERATOR
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Choice, Variable

COLUMNS = ("cut", "macs", "validation", "validation_as_it_stands", "test", "test_as_it_stands")
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


def right(net: autotailor.SuperNet, subnet: SubNet, splits: DataSplits) -> tuple[float, float]:
    """Percent of the validation and of the test pictures that a SubNet says right."""
    module = net.module(logits=True).eval()
    statistics = accuracy.Calibrator(splits, CALIBRATION).statistics(module, subnet)
    of_validation, of_test = (
        percent(evaluate(module, subnet, part, statistics).values) for part in (splits.validation, splits.test)
    )
    return of_validation, of_test


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--case", choices=sorted(CASES), default="clipart")
    asked = parser.parse_args()
    source = CASES[asked.case].prepare(asked.folder.resolve())
    splits = data.load(CASES[asked.case].section(asked.folder.resolve()))
    proposed = autotailor.compile(source).space_section()
    given = autotailor.compile(source, {**proposed, "alternatives": ALTERNATIVES})
    solved = accuracy.prepare(given, splits, accuracy.MomentsConfig(), CALIBRATION).net
    plain = accuracy.adopt_statistics(given, splits, CALIBRATION).sort_channels()
    macs = given.macs()
    whole = macs.predict(given.largest().to_array()[None])[0]
    rows = []
    for cut, subnet in subnets(given).items():
        share = macs.predict(subnet.to_array()[None])[0] / whole
        (validation, test), (val_plain, test_plain) = (right(net, subnet, splits) for net in (solved, plain))
        rows.append((cut, round(share, 2), *(round(v, 1) for v in (validation, val_plain, test, test_plain))))
        print(*rows[-1], flush=True)
    table = pd.DataFrame(rows, columns=COLUMNS)
    Console(width=160).print(plain_table(table, "Nothing is trained"))
    if asked.csv:
        table.to_csv(asked.csv, index=False)


if __name__ == "__main__":
    main()
