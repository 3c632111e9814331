"""Rule validate: whole SubNets, measured and predicted from the LUT."""

from pathlib import Path

import autotailor
from stage import stage

from autotailor import artifacts, profiling
from autotailor.profiling.validation import kendall_tau, validation_subnets

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    device = profiling.DeviceConfig.from_section(this.params["device"])
    lut = profiling.LUT.read(Path(snakemake.input.lut))
    latency = net.latency(lut.latencies(), profiling.fusion_rules(device))
    subnets = validation_subnets(net.space, this.params["validate"]["subnets"], this.params["validate"]["seed"])
    table = profiling.validate(net, latency, subnets, device, this.work, lut=lut)
    with artifacts.atomic(snakemake.output.validation) as path:
        table.to_csv(path, index=False)
    tau, error = kendall_tau(table), table["relative_error"].abs().mean()
    this.run.metrics({"kendall_tau": tau, "mean_absolute_relative_error": error})
    print(f"latency predicted against measured, {len(table)} SubNets: Kendall's tau {tau:.3f}, mean error {error:.1%}")
