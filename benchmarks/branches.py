"""Alternatives of blocks: how many SubNets, how fast the exact front, do files agree, and what closed form is worth.

    OMP_NUM_THREADS=1 python benchmarks/branches.py counts front agreement        # random weights
    OMP_NUM_THREADS=1 python benchmarks/branches.py ranks errors --case clipart --folder FOLDER

Each part adds its rows to ``--csv``, in place of those that it added before.

- ``counts``: SubNets of chains of blocks with merged blocks against AdaptiveNet's f(n) = w f(n-1) + f(n-2) + f(n-3)
  (section 7.2), of 16, 33 and 16 blocks.
- ``front``: CPU seconds of the exact front on ResNet50's space with alternatives, and predictions a second, with
  latencies and accuracies as in ``search.py``.
- ``agreement``: random SubNets of four networks with alternatives, in onnxruntime, ncnn and PyTorch: the largest
  difference, as a share of the largest output.
- ``ranks``: of each low rank of each map, the error on pictures that nothing was solved on, over that of plain SVD and
  of ASVD (weights scaled by the square root of the mean of |x|); the largest is reported.
- ``errors``: what each alternative of each block leaves of what the block says, as a share of its variance on pictures
  that nothing was solved on, in closed form and as built from the weights; and the multiply-accumulates that it takes.
- ``svd``: accuracy without training of random SubNets that take 78 to 82 % of the multiply-accumulates by low ranks
  alone, in closed form beside plain SVD of the same ranks; BatchNorm is estimated anew for both.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pandas as pd
import torch
from given import clipart, finished, letters
from torch import nn

import autotailor
from autotailor import accuracy, data, search
from autotailor.accuracy.calibration import as_input
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.onnx_writer import to_onnx
from autotailor.ir.junctions import JUNCTION, OPERATOR, OWNER, SOURCES, junctions, source_of
from autotailor.ir.space.subnet import canonical
from autotailor.ir.space.variable import Modification
from autotailor.profiling import DeviceConfig
from autotailor.profiling.runtimes import open_runtime

CASES = {"clipart": clipart, "letters": letters, "finished": finished}
ALL = {"low_rank": [0.75, 0.5, 0.25], "depthwise": True, "ghost": [2], "fire": True, "shrunk": [0.75, 0.5, 0.25]}
PREDICTED, PIXELS = 200_000, 20_000
RANKED, SHARE = 12, (0.78, 0.82)
CPU = torch.device("cpu")
Row = dict[str, Any]


class Residual(nn.Module):
    """A bottleneck."""

    def __init__(self, width: int) -> None:
        super().__init__()
        sides = ((width, 8, 1), (8, 8, 3), (8, width, 1))
        convs = (nn.Sequential(nn.Conv2d(i, o, k, padding=k // 2, bias=False), nn.BatchNorm2d(o)) for i, o, k in sides)
        self.reduce, self.middle, self.expand = convs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + self.expand(self.middle(self.reduce(x).relu()).relu())).relu()


def chain(blocks: int) -> nn.Module:
    """A network of so many equal blocks."""
    stem, head = nn.Conv2d(3, 16, 3, 2, 1), (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4))
    return nn.Sequential(stem, *(Residual(16) for _ in range(blocks)), *head).eval()


def counts(_: argparse.Namespace) -> Iterator[Row]:
    """Numbers of SubNets of three chains."""
    shrunk = {"merged": [1, 2], "shrunk": [0.5, 0.25]}
    cases = ((16, {"merged": [1, 2]}, 10_609), (33, {"merged": [1, 2]}, 334_745_777), (16, shrunk, 258_371_689))
    for blocks, asked, wanted in cases:
        spent, net = seconds(lambda b=blocks, a=asked: autotailor.compile(chain(b), {"alternatives": a}, resolution=16))
        found = net.space.num_distinct
        yield {"case": f"{blocks} blocks, {' '.join(asked)}", "what": "SubNets", "value": found, "bar": wanted}
        yield {"case": f"{blocks} blocks, {' '.join(asked)}", "what": "CPU seconds to compile", "value": spent}


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of some work, and its result."""
    start = time.process_time()
    result = work()
    return round(time.process_time() - start, 2), result


def front(_: argparse.Namespace) -> Iterator[Row]:
    """The exact front and predictions of ResNet50's space, without and with alternatives."""
    import search as plain

    from autotailor import config
    from autotailor.compiler.sources.network import create_network
    from autotailor.profiling.runtimes.ncnn.fusion import NCNN_FUSION

    model = config.compose(plain.CONF, "resnet50", "host")["model"]
    network = create_network(model["source"], pretrained=False)
    some = {"low_rank": [0.5], "ghost": [2], "fire": True, "shrunk": [0.5]}
    for case, asked in (("none", {}), (" ".join(some), some)):
        section = {**model["space"], "alternatives": asked}
        spent, net = seconds(lambda s=section: autotailor.compile(network, s, resolution=model["resolution"]))
        rng = np.random.default_rng(0)
        yield {"case": case, "what": "SubNets", "value": f"{net.space.num_distinct:.2e}"}
        yield {"case": case, "what": "distinct operators", "value": len(net.operators(fusion=NCNN_FUSION))}
        latency, said = plain.latency(net, rng), plain.accuracy(net.space, rng)
        drawn = np.stack([rng.integers(0, len(v.choices), PREDICTED) for v in net.space], axis=1)
        rows = canonical(net.space, drawn)
        latency.predict(rows[:1])
        spent, _ = seconds(lambda m=latency, r=rows: m.predict(r))
        yield {"case": case, "what": "predictions a CPU second", "value": round(PREDICTED / spent), "bar": 1_000_000}
        spent, exact = seconds(lambda m=latency, s=said: search.exact_front(search.Objectives(s, m)))
        yield {"case": case, "what": "CPU seconds of the exact front", "value": spent, "bar": 5}
        yield {"case": case, "what": "SubNets on the front", "value": len(exact.front)}


def agreement(options: argparse.Namespace) -> Iterator[Row]:
    """The largest differences between runtimes over random SubNets of four networks."""
    from autotailor import zoo
    from autotailor.export.verification import run_onnx

    made: dict[str, Callable[[], nn.Module]] = {
        "resnet_digits": zoo.resnet_digits,
        "mobilenet_digits": zoo.mobilenet_digits,
        "vit_digits": zoo.vit_digits,
        "letters": lambda: letters.network(10),
    }
    runtime = open_runtime(DeviceConfig(name="host"))
    for name, make in made.items():
        torch.manual_seed(0)
        network = make().eval()
        proposed = autotailor.compile(network, resolution=32).space_section()
        net = autotailor.compile(network, {**proposed, "alternatives": {**ALL, "merged": [1]}}, resolution=32)
        rng, worst = np.random.default_rng(0), {"onnxruntime": 0.0, "ncnn": 0.0, "the SuperNet": 0.0}
        module, used = net.module().eval(), set()
        for _ in range(options.subnets):
            subnet = net.sample(rng)
            used |= {choice for variable, choice in subnet.assignment.items() if variable.endswith(OPERATOR)}
            side = int(subnet.assignment.get("resolution", 32))
            images = rng.normal(size=(2, 3, side, side)).astype(np.float32)
            with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
                wanted = net.build(subnet).eval()(torch.from_numpy(images)).numpy()
                path = Path(folder) / "model.onnx"
                onnx.save(to_onnx(net.slice(subnet), names=net.names), str(path))
                runtime.convert(path, Path(folder))
                said = {
                    "onnxruntime": run_onnx(path)(images),
                    "ncnn": runtime.run(Path(folder), images),
                    "the SuperNet": module.activate(subnet)(torch.from_numpy(images)).numpy(),
                }
            for key, found in said.items():
                apart = float(np.abs(np.reshape(found, wanted.shape) - wanted).max() / np.abs(wanted).max())
                worst[key] = max(worst[key], apart)
        yield {"case": name, "what": "SubNets", "value": options.subnets}
        yield {"case": name, "what": "choices among them", "value": " ".join(sorted(map(str, used)))}
        for key, apart in worst.items():
            yield {"case": name, "what": f"largest difference, PyTorch and {key}", "value": f"{apart:.1e}", "bar": 1e-4}


class Prepared(NamedTuple):
    """A trained network with alternatives.

    Attributes:
        built: with alternatives as they follow from the weights.
        solved: with alternatives in closed form.
        splits: of the pictures.
        calibrator: on as many training pictures as the closed form has seen.
    """

    built: autotailor.SuperNet
    solved: autotailor.SuperNet
    splits: data.DataSplits
    calibrator: accuracy.Calibrator

    @classmethod
    def of(cls, options: argparse.Namespace, alternatives: Mapping[str, Any] = ALL) -> Prepared:
        """The network of the case that the options name."""
        folder = options.folder.resolve()
        source, splits = CASES[options.case].prepare(folder), data.load(CASES[options.case].section(folder))
        net = autotailor.compile(source, {"alternatives": dict(alternatives)})
        calibration = accuracy.CalibrationConfig(images=options.images)
        solved = accuracy.prepare(net, splits, accuracy.MomentsConfig(images=options.images), calibration).net
        calibrator = accuracy.Calibrator(splits, calibration)
        return cls(calibrator.adopt(net, CPU, every=True), solved, splits, calibrator)

    def test_images(self, count: int) -> torch.Tensor:
        """The first pictures of the test set as a network reads them."""
        return as_input(torch.cat([images for images, _ in self.splits.test.batches(64)])[:count], CPU)


@torch.no_grad()
def values_of(net: autotailor.SuperNet, images: torch.Tensor, wanted: set[str]) -> dict[str, torch.Tensor]:
    """Tensors of the whole graph, alternatives included."""
    values = {net.graph.input: images}
    GraphModule(net.graph).eval().advance(values, 0, len(net.graph.nodes), hold=wanted)
    return {name: values[name] for name in wanted}


def errors(options: argparse.Namespace) -> Iterator[Row]:
    """What each alternative leaves of what its block, or its map, says."""
    prepared = Prepared.of(options)
    plain, solved, images = prepared.built, prepared.solved, prepared.test_images(options.images)
    wanted = {name for node in junctions(solved.graph) for name in (*node.inputs, *node.outputs)}
    built, closed = (values_of(net, images, wanted) for net in (plain, solved))
    macs, base = solved.macs(), solved.largest()
    whole = float(macs.predict(base.to_array()[None])[0])
    for block in solved.blocks:
        variable = solved.space.find(block.name, OPERATOR)
        for choice in variable.choices[1:] if variable is not None else ():
            if choice.startswith("low_rank") and choice != f"low_rank:{max(ALL['low_rank'])}":
                continue  # the whole graph has the largest rank alone
            own = [(n, source_of(n, choice)) for n in block.nodes if n.kind == JUNCTION and source_of(n, choice)]
            built_error, error = (
                float(np.mean([_left(values[_given(n)], values[n.inputs[place]]) for n, place in own]))
                for values in (built, closed)
            )
            subnet = base.transform(Modification(variable.name, choice))
            share = float(macs.predict(subnet.to_array()[None])[0]) / whole
            row = {"case": f"{options.case}, {block.name}", "what": f"error of {choice}"}
            yield {**row, "value": round(error, 4), "bar": round(built_error, 4), "macs": round(share, 4)}


def _left(target: torch.Tensor, said: torch.Tensor) -> float:
    return float((target - said).square().mean() / target.var())


def _given(junction: Any) -> str:
    return str(junction.outputs[0] if junction.get(OWNER) else junction.inputs[0])


def ranks(options: argparse.Namespace) -> Iterator[Row]:
    """Errors of low ranks over those of plain SVD and ASVD, on pictures of the test set."""
    prepared = Prepared.of(options)
    plain, solved, images = prepared.built, prepared.solved, prepared.test_images(options.images)
    graph, own = solved.graph, [n for n in junctions(solved.graph) if "low_rank" in n.get(SOURCES)]
    nodes = {n.name: solved.elastic.original.producers[n.outputs[0]] for n in own}
    wanted = {name for n in own for name in (n.inputs[0], nodes[n.name].inputs[0])}
    values = values_of(plain, images, wanted)
    for junction in own:
        node = nodes[junction.name]
        if node.kind != "Conv":
            continue
        y = values[junction.inputs[0]].movedim(1, -1).flatten(0, -2).double().numpy()
        y = y[np.random.default_rng(0).permutation(len(y))[:PIXELS]]
        x = values[node.inputs[0]]
        weight = graph.weights[node.inputs[1]].astype(np.float64)
        last = graph.producers[junction.inputs[junction.get(SOURCES).index("low_rank")]]
        basis, centre = (graph.weights[name].astype(np.float64) for name in last.inputs[1:3])
        basis = basis.reshape(len(basis), -1)
        gap = y - centre
        scale = x.abs().mean((0, 2, 3)).double().sqrt().numpy()[:, None, None]
        left = np.linalg.svd(weight.reshape(len(weight), -1), full_matrices=False)[0]
        scaled = (weight * scale).reshape(len(weight), -1)
        bias = graph.weights[node.inputs[2]] if len(node.inputs) > 2 and node.inputs[2] else 0.0
        ends = {"plain SVD": (left, y - bias), "ASVD": (np.linalg.svd(scaled, full_matrices=False)[0], y - bias)}
        kept = _left_by_rank(gap, basis)
        for name, (other, rest) in ends.items():
            ratio = (kept + 1e-12) / (_left_by_rank(rest, other[:, : basis.shape[1]]) + 1e-12)
            row = {"case": f"{options.case}, {node.name}", "what": f"largest error over that of {name}"}
            yield {**row, "value": round(float(ratio.max()), 3), "bar": 1.01, "ranks": basis.shape[1]}


def _left_by_rank(y: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Mean square of what the first 1, 2 ... directions leave of responses ``[n, out]``."""
    whole, along = np.square(y).sum(), np.square(y @ basis).sum(0)
    return np.asarray((whole - np.cumsum(along)).clip(min=0) / len(y))


def svd(options: argparse.Namespace) -> Iterator[Row]:
    """Test accuracy of SubNets of low rank, in closed form and by plain SVD."""
    net, solved, splits, calibrator = Prepared.of(options, {"low_rank": ALL["low_rank"]})
    macs, rng, chosen = net.macs(), np.random.default_rng(0), list[autotailor.SubNet]()
    whole = float(macs.predict(net.largest().to_array()[None])[0])
    while len(chosen) < RANKED:
        subnet = net.sample(rng)
        if SHARE[0] <= float(macs.predict(subnet.to_array()[None])[0]) / whole <= SHARE[1]:
            chosen.append(subnet)
    original = accuracy.correctness(net.module().activate(net.largest()), splits.test)
    yield {"case": options.case, "what": "right, the network", "value": round(100 * float(original.mean()), 1)}
    right = {}
    for way, each in (("closed form", solved), ("plain SVD", net)):
        module = each.module().eval()
        outcomes = [accuracy.evaluate(module, s, splits.test, calibrator.statistics(module, s)) for s in chosen]
        right[way] = np.stack([outcome.values for outcome in outcomes])
        yield {"case": options.case, "what": f"right, {way}", "value": round(100 * float(right[way].mean()), 1)}
    gain = 100 * (right["closed form"] - right["plain SVD"])
    error = gain.mean(0).std(ddof=1) / np.sqrt(gain.shape[1])
    said = f"{gain.mean():.1f} ± {error:.1f}; least {gain.mean(1).min():.1f}, most {gain.mean(1).max():.1f}"
    yield {"case": options.case, "what": "points above plain SVD", "value": said, "bar": 3}


PARTS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    part.__name__: part for part in (counts, front, agreement, ranks, errors, svd)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=sorted(PARTS))
    parser.add_argument("--case", choices=sorted(CASES), default="clipart")
    parser.add_argument("--folder", type=Path, default=Path("results/clipart"))
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--subnets", type=int, default=200)
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    for part in options.parts:
        rows = []
        for row in PARTS[part](options):
            rows.append({"part": part, **row})
            print(*(value for value in rows[-1].values()), flush=True)
        known = pd.read_csv(options.csv, dtype=str) if options.csv.exists() else pd.DataFrame(columns=["part", "case"])
        prefix = options.case if part in ("ranks", "errors", "svd") else ""
        again = (known["part"] == part) & known["case"].str.startswith(prefix)
        pd.concat([known[~again], pd.DataFrame(rows)]).to_csv(options.csv, index=False)


if __name__ == "__main__":
    main()
