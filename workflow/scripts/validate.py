"""Rule validate: latencies of whole SubNets, measured and predicted from the LUT."""

import logging
from pathlib import Path

import autotailor
import pandas as pd
from stage import stage

from autotailor import artifacts, profiling
from autotailor.profiling.networks.promise import Promise, measured_in_quiet
from autotailor.profiling.networks.validation import NOT_MEASURED, validation_subnets
from autotailor.statistics import kendall_tau, kendall_tau_text

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    device = profiling.DeviceConfig.from_section(this.params["device"])
    lut = profiling.LUT.read(Path(snakemake.input.lut))
    fusion = profiling.fusion_rules(device)
    latency, errors = net.latency(lut.latencies(), fusion), net.latency_error(lut.standard_errors(), fusion)
    chosen = this.params["validate"]
    subnets = validation_subnets(net.space, chosen["subnets"], chosen["seed"])
    promise = Promise.from_section(chosen["promise"])
    measured = not this.params["imported"]
    table = NOT_MEASURED
    if measured:

        def measure(attempt: int) -> pd.DataFrame:
            kept = this.work / f"attempt_{attempt}"
            settings = {"lut": lut, "errors": errors, "rounds": chosen["rounds"], "kept": kept}
            return profiling.validate(net, latency, subnets, device, this.work, **settings)

        table = measured_in_quiet(measure, promise, chosen["attempts"])
    with artifacts.atomic(snakemake.output.validation) as path:
        table.to_csv(path, index=False)
    if measured:
        tau = kendall_tau(table["predicted_ms"], table["measured_ms"])
        error, raw = table[["relative_error", "raw_error"]].abs().mean()
        this.run.metrics({"kendall_tau": tau, "mean_absolute_relative_error": error, "mean_absolute_raw_error": raw})
        this.tell(
            f"latency predicted, {len(table)} SubNets measured: Kendall's tau {kendall_tau_text(tau)}, mean error "
            f"{error:.1%} ({raw:.1%} without correction of the machine's drift since profiling)"
        )
        this.run.metrics({"share_within_promise": promise.share_within(table), "promise_kept": promise.is_kept(table)})
        log = logging.info if promise.is_kept(table) else logging.warning
        log("latency predictor: %s", promise.verdict(table))
    else:
        this.tell(
            f"SubNets are not measured, because the LUT is imported; to measure on {device.name}, leave out lut=..."
        )
