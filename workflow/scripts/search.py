"""Rule search: the Pareto front of predicted latency and accuracy, and the SubNets to export."""

from pathlib import Path

import autotailor
import pandas as pd
from stage import stage

from autotailor import artifacts, profiling, reporting, search, sensitivity

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
    result = search.search(objectives, search.SearchConfig.from_section(this.params["search"]))
    result.write(Path(snakemake.output.pareto), Path(snakemake.output.yardstick))
    named = search.budget_subnets(objectives, result.front, this.params["budgets"])
    search.write_budgets(Path(snakemake.output.front), named)
    with artifacts.atomic(snakemake.output.contributors) as path:
        reporting.contributors(net.places(fusion), latencies, named).to_csv(path, index=False)
    yardstick = {key: value for key, value in vars(result.yardstick).items() if isinstance(value, (int, float))}
    this.run.metrics({"front": len(result.front), **yardstick})
