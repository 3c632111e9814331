"""Rule screen: what SubNets may cost as a whole that keep a budget of the expected cost with early exits."""

from pathlib import Path

import autotailor
import pandas as pd
from stage import stage

from autotailor import accuracy, artifacts, data, profiling, search, sensitivity
from autotailor.exits import costs
from autotailor.exits.config import ExitsConfig
from autotailor.exits.search.screening import Screening, whole_budgets

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    kind = search.cost_of_device(this.params["runtime"])
    config, asked = search.SearchConfig.from_section(this.params["search"]), this.params["early"]
    cost, forecast, lut = None, search.AS_PREDICTED, None
    if kind.is_measured:
        fusion = profiling.fusion_rules(profiling.DeviceConfig.from_section(this.params["runtime"]))
        lut = profiling.LUT.read(Path(snakemake.input.lut))
        cost, errors = net.latency(lut.latencies(), fusion), net.latency_error(lut.standard_errors(), fusion)
        forecast = search.read_forecast(Path(snakemake.input.validation), config, errors, cost)
    cost = cost or kind.count(net)
    cost = search.without(cost, search.never_faster(cost))
    accelerator = this.params["sensitivity"]["accelerator"]
    splits = accuracy.with_labels(data.load(this.params["data"]), snakemake.input.original, accelerator)
    this.uses(splits, "train", "validation")
    baseline, drops = artifacts.read_json(snakemake.input.baseline), pd.read_csv(snakemake.input.sensitivity)
    predicted = sensitivity.predicted_accuracy(net.space, drops, baseline["accuracy"], baseline["standard_error"])
    front = search.search(search.Objectives(predicted.metric, cost), config).front

    def price(subnet, network):
        return costs.predicted(net, subnet, network, lut.latencies(), fusion) if lut else costs.counted(network)

    calibration = accuracy.CalibrationConfig.from_section(this.params["calibration"])
    exits = ExitsConfig.from_section(asked["exits"])
    screening = Screening(net, splits, exits, calibration, price, this.work, accelerator)
    whole = float(cost.predict(net.largest().to_array())[0])
    limits = whole_budgets(asked["budgets"], front, whole, kind, forecast, screening)
    artifacts.write_json(snakemake.output.limits, {"limits": limits})
    this.tell(", ".join(f"{name}: {limit:.4g} {kind.unit} as a whole" for name, limit in limits.items()))
