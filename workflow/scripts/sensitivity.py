"""Rule sensitivity: the accuracy of single modifications and of further SubNets on the validation set."""

import autotailor
from stage import stage

from autotailor import accuracy, artifacts, data, prediction, sensitivity, task

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
    with artifacts.atomic(snakemake.output.sensitivity) as path:
        result.rows.to_csv(path, index=False)
    baseline = {"accuracy": result.baseline, "standard_error": result.baseline_standard_error, "set": "validation"}
    artifacts.write_json(snakemake.output.baseline, baseline)
    this.run.metrics({"baseline_accuracy": result.baseline})
    name = task.score_of(splits).mean
    this.tell(f"{len(outcomes.subnets) + 1} SubNets evaluated; {name} of the largest {result.baseline:.1f} %")
