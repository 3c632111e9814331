"""Rule enumerate: the unique fused operators of the space."""

import autotailor
from stage import stage

from autotailor import artifacts, enumeration, profiling

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    fusion = profiling.fusion_rules(profiling.DeviceConfig.from_section(this.params["runtime"]))
    operators = enumeration.enumerate_operators(net, fusion)
    with artifacts.atomic(snakemake.output.operators) as path:
        enumeration.write_operators(path, operators)
    this.run.metrics({"operators": len(operators), "places": sum(operator.places for operator in operators)})
