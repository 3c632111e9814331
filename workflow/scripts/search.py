"""Rule search: the Pareto front of accuracy and latency, or another cost, and the SubNets to export."""

from functools import partial
from pathlib import Path

import autotailor
import numpy as np
import pandas as pd
from stage import stage

from autotailor import accuracy, artifacts, data, prediction, profiling, search, sensitivity, task

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    kind, config = (
        search.cost_of_device(this.params["runtime"]),
        search.SearchConfig.from_section(this.params["search"]),
    )
    early = artifacts.read_json(snakemake.input.early)["limits"] if snakemake.input.early else {}
    budgets, model, rounds = search.as_whole(this.params["budgets"], early), None, None
    if kind.is_measured:
        device = profiling.DeviceConfig.from_section(this.params["runtime"])
        fusion = profiling.fusion_rules(device)
        lut = profiling.LUT.read(Path(snakemake.input.lut))
        cost, errors = net.latency(lut.latencies(), fusion), net.latency_error(lut.standard_errors(), fusion)
        forecast = search.read_forecast(Path(snakemake.input.validation), config, errors, cost)
        further = search.further_metrics(net, budgets, fusion, lut.column, device.number_bytes)
    else:
        cost, forecast, further = kind.count(net), search.AS_PREDICTED, search.further_metrics(net, budgets)
    slow = search.never_faster(cost)
    cost = search.without(cost, slow)
    splits = accuracy.with_labels(
        data.load(this.params["data"]), snakemake.input.original, this.params["sensitivity"]["accelerator"]
    )
    this.uses(splits, "validation")
    settings = sensitivity.SensitivityConfig.from_section(this.params["sensitivity"], this.params["calibration"])
    images = sensitivity.learnt_from(splits, settings)
    chance = task.of(images).chance(images.labels)
    known = prediction.read_outcomes(snakemake.input.evaluations, net.space, images.groups, chance)
    if settings.evaluations:
        journal = this.work / "evaluations.jsonl"
        rounds = prediction.evaluate_along_front(
            known,
            net.macs(),
            search.best_at(cost, budgets, config, forecast, further),
            lambda subnets: sensitivity.evaluate(net, splits, images, subnets, settings, journal, "front"),
            config.evaluations,
            config.regret,
            np.random.default_rng(config.seed),
        )
        model, known, predicted = rounds.model, rounds.outcomes, prediction.Accuracy.learnt(rounds.model)
        this.run.metrics(rounds.metrics())
    else:
        baseline = artifacts.read_json(snakemake.input.baseline)
        drops = pd.read_csv(snakemake.input.sensitivity)
        predicted = sensitivity.predicted_accuracy(net.space, drops, baseline["accuracy"], baseline["standard_error"])
    prediction.write_accuracy(snakemake.output.accuracy, predicted)
    objectives = search.Objectives(predicted.metric, cost, (net.macs(), net.parameters()))
    journal = this.work / "candidates.jsonl"
    measure = partial(sensitivity.measure_accuracies, net, splits, config=settings, journal=journal, model=model)
    evaluated = known.subnets
    if images is splits.validation:
        measure = partial(measure, past=known)
    else:
        evaluated = search.undominated(cost, known.subnets, known.values.mean(axis=1))
    result = search.search(objectives, config)
    choice = search.choose(objectives, result.front, budgets, measure, config, forecast, further, evaluated)
    choice.write(Path(snakemake.output.candidates))
    regret = rounds.remaining(choice.subnets) if rounds else {}
    result.write(Path(snakemake.output.pareto), Path(snakemake.output.yardstick), regret, slow, forecast.link())
    named = {"largest": net.largest(), **choice.subnets}
    search.write_budgets(Path(snakemake.output.front), named)
    if slow:
        this.tell(f"left out, because never faster here: {', '.join(map(str, slow))}")
    this.tell(f"{len(result.front.indices):,} SubNets on the front")
    if regret:
        said = ", ".join(f"{name} {points:.1f}" for name, points in regret.items())
        this.tell(f"points by which another SubNet is expected to be better: {said}")
    this.run.metrics(result.metrics())
