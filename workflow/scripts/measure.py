"""Rule measure: the exported SubNets and the original network, predicted against measured."""

import json
from pathlib import Path

import autotailor
import pandas as pd
from stage import stage

from autotailor import accuracy, artifacts, data, prediction, profiling, reporting, search
from autotailor.finetuning import polishing
from autotailor.ir.space.link import IDENTITY
from autotailor.measurement import inheritance, pictures, published, summary
from autotailor.measurement.config import Effort

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    cost = search.cost_of_device(this.params["device"])
    has_device = cost.is_measured
    device = profiling.DeviceConfig.from_section(this.params["device"]) if has_device else None
    lut = profiling.LUT.read(Path(snakemake.input.lut)) if has_device else None
    predicted = prediction.read_accuracy(Path(snakemake.input.accuracy), net.macs())
    predictions = summary.predictions(net, predicted, lut, device)
    files = {Path(path).parent.name: Path(path).resolve() for path in snakemake.input.onnx}
    models = dict(files)
    if has_device:
        models = {name: profiling.converted_file(path, device, this.work / name) for name, path in models.items()}
    models[summary.ORIGINAL] = summary.export_original(autotailor.load(snakemake.input.original), device, this.work)
    chosen = polishing.read_exported(Path(snakemake.input.chosen), Path(snakemake.input.polished), net)
    subnets = {name: each.subnet for name, each in chosen.items()}
    if has_device:
        with artifacts.atomic(snakemake.output.contributors) as path:
            places = net.places(profiling.fusion_rules(device))
            stages = reporting.stages_of(places, net.stages)
            reporting.contributors(places, lut.latencies(), subnets, stages).to_csv(path, index=False)
    splits = accuracy.with_labels(data.load(this.params["data"]), snakemake.input.original)
    this.uses(splits, "train", "test")
    calibration = accuracy.CalibrationConfig.from_section(this.params["calibration"])
    weights = inheritance.inheritance(net, chosen, splits, calibration)
    measured = has_device and not this.params["imported"]
    used, effort = lut if measured else None, Effort.from_section(this.params["measure"])
    link = search.read_link(Path(snakemake.input.validation)) if has_device else IDENTITY
    table = summary.summarise(predictions, subnets, weights, models, splits.test, device, used, effort, link)
    if has_device:
        limits = search.read_candidates(Path(snakemake.input.confirmed), net.space).limits
        table = summary.with_budgets(table, limits, search.budget_shares(this.params["budgets"], cost.name))
    with artifacts.atomic(snakemake.output.summary) as path:
        table.to_csv(path, index=False)
    with artifacts.atomic(snakemake.output.pictures) as path:
        path.write_text(json.dumps(pictures.pictures(models, splits)), encoding="utf-8")
    if has_device and not measured:
        this.tell(
            f"latencies are not measured, since the LUT is imported; to measure on {device.name}, leave out lut=..."
        )
    elif has_device and table["budget_met"].notna().any():
        this.tell(f"{table['budget_met'].eq(True).sum()} of {table['budget_met'].notna().sum()} budgets are met")
    for row in table.to_dict("records"):
        keys = ("latency_ms_measured", "accuracy_inherited", "accuracy_measured", "size_mb", "memory_mb_measured")
        this.run.metrics({f"{row['name']}/{key}": row[key] for key in keys if pd.notna(row.get(key))})
    for exported in published.exported_models(table, files, splits, cost, this.work / "examples"):
        this.run.model(exported)
