"""Rule search: the Pareto front of predicted latency and accuracy, and the SubNets to export."""

from pathlib import Path

import autotailor
import pandas as pd
from stage import stage

from autotailor import artifacts, data, profiling, reporting, search, sensitivity

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    fusion = profiling.fusion_rules(profiling.DeviceConfig.from_section(this.params["runtime"]))
    latencies = profiling.LUT.read(Path(snakemake.input.lut)).latencies()
    baseline = artifacts.read_json(snakemake.input.baseline)["accuracy"]
    objectives = search.Objectives(
        sensitivity.accuracy_metric(net.space, pd.read_csv(snakemake.input.sensitivity), baseline),
        net.latency(latencies, fusion),
        (net.macs(), net.parameters()),
    )
    config = search.SearchConfig.from_section(this.params["search"])
    result = search.search(objectives, config)
    result.write(Path(snakemake.output.pareto), Path(snakemake.output.yardstick))
    budgets = search.latency_budgets(objectives, result.front, this.params["budgets"])
    found = {
        name: search.candidates(objectives, result.front, budget, config.candidates, config.seed)
        for name, budget in budgets.items()
    }
    measured = sensitivity.measure_accuracies(
        net,
        data.load(this.params["data"]),
        list(dict.fromkeys(subnet for subnets in found.values() for subnet in subnets)),
        sensitivity.SensitivityConfig.from_section(
            {**this.params["sensitivity"], "calibration": this.params["calibration"]}
        ),
        this.work / "candidates.jsonl",
    )
    accuracies = {id_: search.Measured(*value) for id_, value in measured.items()}
    chosen, table = search.choose(objectives, found, accuracies, budgets)
    named = {"largest": net.largest(), **chosen}
    with artifacts.atomic(snakemake.output.candidates) as path:
        table.to_csv(path, index=False)
    search.write_budgets(Path(snakemake.output.front), named)
    with artifacts.atomic(snakemake.output.contributors) as path:
        reporting.contributors(net.places(fusion), latencies, named).to_csv(path, index=False)
    yardstick = {key: value for key, value in vars(result.yardstick).items() if isinstance(value, (int, float))}
    this.run.metrics({"front": len(result.front), **yardstick})
