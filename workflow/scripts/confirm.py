"""Rule confirm: the candidates of each budget, measured before any of them is polished."""

from pathlib import Path

import autotailor
from stage import stage

from autotailor import accuracy, data, prediction, profiling, search, sensitivity
from autotailor.measurement import confirmation
from autotailor.measurement.config import ConfirmEffort
from autotailor.profiling.networks.validation import validation_subnets

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    device = profiling.DeviceConfig.from_section(this.params["device"])
    fusion, lut = profiling.fusion_rules(device), profiling.LUT.read(Path(snakemake.input.lut))
    latency, errors = net.latency(lut.latencies(), fusion), net.latency_error(lut.standard_errors(), fusion)
    config = search.SearchConfig.from_section(this.params["search"])
    forecast = search.read_forecast(Path(snakemake.input.validation), config, errors, latency)
    predicted = prediction.read_accuracy(Path(snakemake.input.accuracy), net.macs())
    effort = ConfirmEffort.from_section(this.params["confirm"])
    further = search.further_metrics(net, this.params["budgets"], fusion, lut.column, device.number_bytes)

    def measure(subnets):
        """Accuracies of SubNets that the search has not measured; the data are not read where there are none."""
        settings = sensitivity.SensitivityConfig.from_section(this.params["sensitivity"], this.params["calibration"])
        splits = accuracy.with_labels(data.load(this.params["data"]), snakemake.input.original, settings.accelerator)
        this.uses(splits, "validation")
        journal = this.work / "candidates.jsonl"
        return sensitivity.measure_accuracies(net, splits, subnets, settings, journal, predicted.model)

    result = confirmation.confirm(
        search.Objectives(predicted.metric, latency),
        search.Front.read(Path(snakemake.input.pareto), net.space),
        search.read_candidates(Path(snakemake.input.candidates), net.space),
        forecast,
        None if this.params["imported"] else confirmation.timing(net, device, lut, effort, this.work),
        measure,
        effort.attempts,
        search.read_limits(Path(snakemake.input.candidates), further),
        validation_subnets(net.space, effort.repeated, this.params["validate"]["seed"]),
        shares=search.budget_shares(this.params["budgets"], search.LATENCY.name),
        bolder=confirmation.BOLDER,
    )
    result.write(Path(snakemake.output.confirmed))
    if this.params["imported"]:
        this.tell(
            f"candidates are not measured, since the LUT is imported; to measure on {device.name}, leave out lut=..."
        )
    else:
        this.tell(result.verdict())
