"""Rule profile: each unique operator measured once on the device."""

from pathlib import Path

from stage import stage

from autotailor import artifacts, enumeration, profiling

with stage(snakemake) as this:
    operators = enumeration.read_operators(Path(snakemake.input.operators))
    device = profiling.DeviceConfig.from_section(this.params["device"])
    lut = profiling.profile(
        [row.feature for row in operators],
        device,
        this.devices / f"{device.name}.jsonl",
        places=[row.places for row in operators],
    )
    with artifacts.atomic(snakemake.output.lut) as path:
        lut.write(path)
    errors = [error / lut.latencies()[key] for key, error in lut.standard_errors().items()]
    this.run.metrics({"operators": len(lut), "mean_relative_standard_error": sum(errors) / len(errors)})
