"""Rule search: the Pareto front of predicted latency and accuracy, and the SubNets to export."""

from functools import partial
from pathlib import Path

import autotailor
import pandas as pd
from stage import stage

from autotailor import accuracy, artifacts, data, profiling, search, sensitivity

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    fusion = profiling.fusion_rules(profiling.DeviceConfig.from_section(this.params["runtime"]))
    latencies = profiling.LUT.read(Path(snakemake.input.lut)).latencies()
    baseline = artifacts.read_json(snakemake.input.baseline)["accuracy"]
    predicted = sensitivity.accuracy_metric(net.space, pd.read_csv(snakemake.input.sensitivity), baseline)
    objectives = search.Objectives(predicted, net.latency(latencies, fusion), (net.macs(), net.parameters()))
    section = {**this.params["sensitivity"], "calibration": this.params["calibration"]}
    measure = partial(
        sensitivity.measure_accuracies,
        net,
        accuracy.with_labels(
            data.load(this.params["data"]), snakemake.input.original, this.params["sensitivity"]["accelerator"]
        ),
        config=sensitivity.SensitivityConfig.from_section(section),
        journal=this.work / "candidates.jsonl",
    )
    config = search.SearchConfig.from_section(this.params["search"])
    result = search.search(objectives, config)
    result.write(Path(snakemake.output.pareto), Path(snakemake.output.yardstick))
    choice = search.choose(objectives, result.front, this.params["budgets"], measure, config)
    choice.write(Path(snakemake.output.candidates))
    named = {"largest": net.largest(), **choice.subnets}
    search.write_budgets(Path(snakemake.output.front), named)
    this.run.metrics(result.metrics())
