"""Rule validate_accuracy: the predicted accuracy of SubNets that taught nothing, against that on the test set."""

import autotailor
import pandas as pd
from stage import stage

from autotailor import accuracy, artifacts, data, prediction, sensitivity, statistics, task

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    splits = accuracy.with_labels(
        data.load(this.params["data"]), snakemake.input.original, this.params["sensitivity"]["accelerator"]
    )
    this.uses(splits, "train", "test")
    config = sensitivity.SensitivityConfig.from_section(this.params["sensitivity"], this.params["calibration"])
    if config.evaluations:
        images = sensitivity.learnt_from(splits, config)
        chance = task.of(images).chance(images.labels)
        known = prediction.read_outcomes(snakemake.input.evaluations, net.space, images.groups, chance)
        predictor = prediction.fit(known, net.macs())
    else:
        baseline = artifacts.read_json(snakemake.input.baseline)
        drops = pd.read_csv(snakemake.input.sensitivity)
        predictor = sensitivity.Sensitivity(drops, baseline["accuracy"], baseline["standard_error"])
    subnets = sensitivity.validation_subnets(net, config)
    table = sensitivity.validate_accuracy(net, splits, predictor, subnets, config, this.work / "validation.jsonl")
    with artifacts.atomic(snakemake.output.validation) as path:
        table.to_csv(path, index=False)
    tau = statistics.kendall_tau(table["predicted"], table["measured"])
    this.run.metrics({"kendall_tau": tau})
    said = statistics.kendall_tau_text(tau)
    this.tell(f"{task.score_of(splits).mean} predicted against measured, {len(table)} SubNets: Kendall's tau {said}")
