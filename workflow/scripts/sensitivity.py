"""Rule sensitivity: the accuracy of single modifications and of further SubNets, and how well these predict."""

import autotailor
from stage import stage

from autotailor import accuracy, artifacts, data, prediction, sensitivity, statistics, task

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    splits = accuracy.with_labels(
        data.load(this.params["data"]), snakemake.input.original, this.params["sensitivity"]["accelerator"]
    )
    this.uses(splits, "train", "validation")
    config = sensitivity.SensitivityConfig.from_section(this.params["sensitivity"], this.params["calibration"])
    result = sensitivity.measure(net, splits, config, this.work / "sensitivity.jsonl")
    outcomes = sensitivity.evaluate_designed(net, splits, config, this.work / "sensitivity.jsonl")
    prediction.write_outcomes(snakemake.output.evaluations, outcomes)
    predictor = prediction.fit(outcomes, net.macs()) if config.evaluations else result
    subnets = sensitivity.validation_subnets(net, config)
    table = sensitivity.validate_accuracy(net, splits, predictor, subnets, config, this.work / "validation.jsonl")
    with artifacts.atomic(snakemake.output.sensitivity) as path:
        result.rows.to_csv(path, index=False)
    baseline = {"accuracy": result.baseline, "standard_error": result.baseline_standard_error, "set": "validation"}
    artifacts.write_json(snakemake.output.baseline, baseline)
    with artifacts.atomic(snakemake.output.validation) as path:
        table.to_csv(path, index=False)
    tau = statistics.kendall_tau(table["predicted"], table["measured"])
    this.run.metrics({"baseline_accuracy": result.baseline, "kendall_tau": tau})
    said = statistics.kendall_tau_text(tau)
    this.tell(f"{task.score_of(splits).name} predicted against measured, {len(table)} SubNets: Kendall's tau {said}")
