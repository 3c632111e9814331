"""What each method costs: lines of configuration, operators to measure, and images of training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rivals import Finished

from autotailor import artifacts, enumeration
from autotailor.ir.feature import OperatorFeature
from autotailor.profiling import LUT, Store, fusion_rules
from autotailor.profiling.device import DeviceConfig
from papers.answers import Answer, read_all
from papers.campaign import MORE, NESTDNN, PIPELINE, RATIOS, WITH_EXITS, Campaign, file_of

CONF = Path(__file__).parents[2] / "conf" / "method"


def lines(text: str) -> int:
    """Lines of a configuration that are neither empty nor comments."""
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in text.splitlines())


def shared_images(run: Finished) -> int:
    """Training images that all SubNets of a run share: of alternatives beside their blocks, and of joint training."""
    beside = int(run.settings["distil"]["images"]) if (run.results.parent / "distilled.pt").exists() else 0
    return beside + int(artifacts.read_json(run.results.parent / "finetune.json")["images"])


def own_images(answers: Sequence[Answer]) -> int:
    """Training images of the SubNets of one run, each of which is trained once for all the budgets that it serves."""
    return sum({each.what: each.images for each in answers if each.images}.values())


def measuring(campaign: Campaign) -> dict[str, float]:
    """Seconds that each operator's measurements took, by its id; empty where nothing is measured."""
    seconds = dict[str, float]()
    if campaign.limited.is_measured:
        for record in Store(campaign.store).records(LUT.read(campaign.table).fingerprint):
            seconds[record.key] = seconds.get(record.key, 0.0) + record.seconds
    return seconds


def pruned_operators(campaign: Campaign, run: Finished) -> list[OperatorFeature]:
    """The operators of the networks that Torch-Pruning leaves; none where nothing is measured."""
    if not campaign.limited.is_measured:
        return []
    rules = fusion_rules(DeviceConfig.from_section(run.settings["device"]))
    found = (feature for net in campaign.pruned(run).values() for feature in net.operators(fusion=rules))
    return list(dict.fromkeys(found))


def table(campaign: Campaign, seed: int) -> pd.DataFrame:
    """One row for each method that has answers: its space, what is measured, and what is trained."""
    answers = [each for each in read_all(campaign.answers) if each.seed == seed]
    seconds = measuring(campaign)
    rows: list[dict[str, Any]] = []
    for method in (each for each in (*PIPELINE, NESTDNN) if any(a.method == each for a in answers)):
        own = [each for each in answers if each.method == method]
        run = campaign.run(method if method in PIPELINE else PIPELINE[0], seed)
        if method in PIPELINE:
            space = artifacts.read_json(run.results.parent / "space.json")
            listed = run.results / "operators.csv"
            operators = (
                [row.feature for row in enumeration.read_operators(listed)] if campaign.limited.is_measured else []
            )
            evaluated = len(pd.read_csv(run.results.parent / "evaluations.csv"))
            shared, variants = shared_images(run), float(space["distinct_variants"])
            written = lines((CONF / f"{file_of(method)}.yaml").read_text(encoding="utf-8")) + len(MORE.get(method, ()))
        else:
            operators, evaluated = pruned_operators(campaign, run), len(RATIOS)
            shared, variants, written = 0, float(len(RATIOS)), 0
        with_exits = [each for each in answers if each.method == WITH_EXITS and method == "adascale"]
        heads = campaign.images if with_exits else 0
        rows.append({
            "method": method, "lines": written, "variants": variants, "operators": len(operators),
            "measuring_s": sum(seconds.get(feature.id, 0.0) for feature in operators), "evaluated": evaluated,
            "shared_images": shared, "own_images": own_images(own),
            "head_images": heads * (1 + len({each.what for each in own if each.images})),
        })  # fmt: skip
    costs = pd.DataFrame(rows)
    return costs.assign(images=costs["shared_images"] + costs["own_images"] + costs["head_images"])
