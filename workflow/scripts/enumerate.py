"""Rule enumerate: the unique fused operators of the space."""

import autotailor
from stage import stage

from autotailor import artifacts, enumeration, profiling

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    device = profiling.DeviceConfig.from_section(this.params["runtime"])
    profiling.check_writable(net, device)
    operators = enumeration.enumerate_operators(net, profiling.fusion_rules(device))
    with artifacts.atomic(snakemake.output.operators) as path:
        enumeration.write_operators(path, operators)
    this.tell(f"{len(operators):,} operators")
    this.run.metrics({"operators": len(operators), "places": sum(operator.places for operator in operators)})
