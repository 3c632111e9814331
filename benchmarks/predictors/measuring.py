"""Measurements for the table. The subject's folder keeps each result, so that nothing is measured again.

The machine's speed drifts between measurements. So latencies are kept in *anchors*, which is the latency over that of
the anchor operator in the same batch. The LUT holds the anchor's latency in milliseconds.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from autotailor.artifacts import atomic
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import UNFUSED
from autotailor.profiling import LUT, ProfilingError, fusion_rules, profile
from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.measuring.session import Session
from autotailor.profiling.networks.timing import measure_networks
from autotailor.profiling.networks.validation import converted
from autotailor.profiling.records.batch import Batch
from autotailor.profiling.records.differential import robust
from autotailor.profiling.records.record import Record
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.ncnn.claims import claims
from autotailor.profiling.runtimes.ncnn.runtime import PARAM
from predictors.subjects import Subject

FUSIONLESS = 5
"""SubNets that are measured with fusion ignored."""
FUSIONLESS_ROUNDS = 5
"""Measuring time of each of these SubNets, as a multiple of its time in a round of whole SubNets."""
TRAINING_SECONDS = 0.2
"""Measuring time of each SubNet that alternatives learn from; short, because they learn better from more SubNets."""
CHUNK = 8
RUNS = 8
PARTS = 3
APART_SECONDS = 60.0
"""Least time between the first and the last round of whole SubNets."""


def whole(subject: Subject, device: DeviceConfig, seconds_each: float, number: int) -> pd.DataFrame:
    """One round of latencies of the judged SubNets: ``subnet``, ``anchors``, ``raw_ms``, ``measured_at``."""

    def measure() -> pd.DataFrame:
        found = measure_networks(subject.networks(device), device, seconds_each=seconds_each, anchor_ms=1.0)
        rows = [(m.key, m.latency_ms, m.raw_ms) for m in found]
        return pd.DataFrame(rows, columns=["subnet", "anchors", "raw_ms"]).assign(measured_at=time.time())

    return _kept(subject.folder / f"whole_{number}.csv", measure)


def interleaved(
    subject: Subject, device: DeviceConfig, operators: Sequence[OperatorFeature], seconds_each: float
) -> tuple[LUT, float, list[pd.DataFrame]]:
    """Measures operators and whole SubNets in turn, so that the machine's drift hits both.

    Returns:
        The LUT; the minutes that measuring the operators has taken in all runs; and the rounds of whole SubNets, one
        before each part of the operators and one after the last part.
    """
    path, spent = subject.folder / "lut.csv", subject.folder / "profiling.json"
    shuffled = list(operators)
    random.Random(0).shuffle(shuffled)
    rounds = []
    for part in range(PARTS):
        rounds.append(whole(subject, device, seconds_each, part))
        if not path.exists():
            begin = time.monotonic()
            try:
                lut = _profiled(subject, device, shuffled[: len(shuffled) * (part + 1) // PARTS])
            finally:
                minutes = json.loads(spent.read_text())["minutes"] if spent.exists() else 0.0
                spent.parent.mkdir(parents=True, exist_ok=True)
                spent.write_text(json.dumps({"minutes": minutes + (time.monotonic() - begin) / 60}))
            if part == PARTS - 1:
                lut.write(path)
    time.sleep(max(0.0, rounds[0].measured_at.max() + APART_SECONDS - time.time()))
    rounds.append(whole(subject, device, seconds_each, PARTS))
    return LUT.read(path), float(json.loads(spent.read_text())["minutes"]), rounds


@retry(retry=retry_if_exception_type(ProfilingError), stop=stop_after_attempt(RUNS), reraise=True)
def _profiled(subject: Subject, device: DeviceConfig, operators: Sequence[OperatorFeature]) -> LUT:
    """Profiles operators until all are measured. A run that is out of time raises ProfilingError; the next goes on."""
    return profile(operators, device, subject.folder / "store", net=subject.net, avoid=subject.subnets)


def naive(
    subject: Subject, device: DeviceConfig, operators: Sequence[OperatorFeature], minutes: float
) -> dict[str, float]:
    """Measures each operator as a network of its own in a loop; returns operator id to anchors."""

    def measure() -> pd.DataFrame:
        with Session(device) as session:
            programs = [session.runtime.alone(feature) for feature in operators]
            each = 60 * minutes / len(programs)
            latencies = _measured(session, programs, lambda count: each * count)
        return pd.DataFrame(latencies.items(), columns=["operator", "anchors"])

    frame = _kept(subject.folder / "naive.csv", measure)
    return dict(zip(frame.operator, frame.anchors, strict=True))


def training(subject: Subject, device: DeviceConfig, minutes: float) -> pd.DataFrame:
    """Measures whole random SubNets for some minutes; returns ``subnet`` (JSON) and ``anchors`` of each."""

    def measure() -> pd.DataFrame:
        left, rows = 60 * minutes, list[tuple[str, float]]()
        others = list(subject.others(2000))
        with Session(device) as session:
            while others and left > 0:
                chunk, others = others[:CHUNK], others[CHUNK:]
                programs = [_whole_program(subject, session, device, subnet) for subnet in chunk]
                begin = time.monotonic()
                latencies = _measured(session, programs, lambda count: TRAINING_SECONDS * count)
                left -= time.monotonic() - begin
                rows += [(subnet.to_json(), latencies[subnet.id]) for subnet in chunk]
        return pd.DataFrame(rows, columns=["subnet", "anchors"])

    return _kept(subject.folder / "training.csv", measure)


def fusionless(subject: Subject, device: DeviceConfig, seconds_each: float) -> float:
    """Latency of SubNets without fusion over that with fusion, as a geometric mean over some SubNets.

    The result is NaN for runtimes other than ncnn, which fuse while they load a network and cannot be told not to. It
    is also NaN where ncnn cannot run an operator unfused.
    """

    def measure() -> pd.DataFrame:
        chosen, names = subject.subnets[:FUSIONLESS], ("fused", "plain")
        if device.runtime != "ncnn":
            return pd.DataFrame({name: [float("nan")] for name in names})
        with Session(device) as session:
            rules = dict(zip(names, (session.runtime.fusion, UNFUSED), strict=True))
            try:
                programs = [
                    replace(in_place(subject, session, subnet, rules[name]), key=f"{subnet.id} {name}")
                    for subnet in chosen
                    for name in names
                ]
            except ProfilingError:  # ncnn knows an operator only as part of a fused one
                return pd.DataFrame({name: [float("nan")] for name in names})
            found = _measured(session, programs, lambda count: FUSIONLESS_ROUNDS * seconds_each * count)
        return pd.DataFrame({name: [found[f"{subnet.id} {name}"] for subnet in chosen] for name in names})

    frame = _kept(subject.folder / "fusion.csv", measure)
    return float((frame["plain"] / frame["fused"]).prod(skipna=False) ** (1 / max(1, len(frame))))


def unclaimed(subject: Subject, device: DeviceConfig) -> tuple[int, int]:
    """Number of layers in the judged SubNets' files that no operator claims, and number of all layers that cost time.

    Both are 0 for runtimes other than ncnn, which fuse while they load a network and leave no list of layers.
    """

    def count() -> pd.DataFrame:
        rows, networks = list[tuple[str, int, int]](), subject.networks(device)
        fusion = fusion_rules(device)
        for subnet in subject.subnets:
            path, shape = networks[subnet.id]
            if device.runtime != "ncnn":
                continue
            features = [operator.feature for operator in subject.net.sequence(subnet, fusion)]
            bill = claims(path / PARAM, features, shape)
            rows.append((subnet.id, len(bill.unclaimed), len(bill.claimed) + len(bill.unclaimed)))
        return pd.DataFrame(rows, columns=["subnet", "unclaimed", "layers"])

    frame = _kept(subject.folder / "claims.csv", count)
    return int(frame.unclaimed.sum()), int(frame.layers.sum())


def in_place(subject: Subject, session: Session, subnet: SubNet, fusion: FusionRules | None = None) -> Program:
    """A whole SubNet that the runtime writes without a conversion, and that runs without stops.

    Raises:
        ProfilingError: the runtime cannot write the SubNet.
    """
    sequence = subject.net.sequence(subnet, fusion or session.runtime.fusion)
    program = session.runtime.in_place(subnet.id, sequence, subject.shape(subnet)[1:], ())
    if program is None:
        raise ProfilingError(f"runtime {session.runtime.name} does not write whole SubNets")
    return replace(program, steps=())


def _whole_program(subject: Subject, session: Session, device: DeviceConfig, subnet: SubNet) -> Program:
    """A whole SubNet, converted if the runtime cannot write it by itself."""
    try:
        return in_place(subject, session, subnet)
    except ProfilingError:
        files = converted(subject.net, subnet, device, subject.folder / "training")
        return session.network(subnet.id, files, (subject.shape(subnet)[1:],))


def _measured(session: Session, programs: Sequence[Program], seconds: Callable[[int], float]) -> dict[str, float]:
    """Latency of each program in anchors, measured in batches."""
    records: list[Record] = []
    batches = [programs[i : i + CHUNK] for i in range(0, len(programs), CHUNK)]
    failures = session.measure([Batch(tuple(batch), seconds(len(batch))) for batch in batches], records.extend)
    if failures:
        raise ProfilingError(f"programs cannot be measured: {failures}")
    wanted = {program.key for program in programs}
    latencies = {record.key: robust(record.blocks, 1).latency_ms / record.anchor_ms for record in records}
    return {key: latencies[key] for key in wanted}


def _kept(path: Path, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """Reads the table in a file; makes the file where there is none."""
    if not path.exists():
        frame = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as temporary:
            frame.to_csv(temporary, index=False)
    return pd.read_csv(path)
