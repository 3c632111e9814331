"""Rule heads: the unique fused operators of the heads of early exits, of all SubNets of the space."""

import autotailor
from stage import stage

from autotailor import artifacts, enumeration, profiling
from autotailor.exits.config import ExitsConfig
from autotailor.exits.heads import head_operators

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    rules = profiling.fusion_rules(profiling.DeviceConfig.from_section(this.params["runtime"]))
    operators = head_operators(net, ExitsConfig.from_section(this.params["heads"]), rules)
    with artifacts.atomic(snakemake.output.operators) as path:
        enumeration.write_operators(path, operators)
    this.tell(f"{len(operators):,} operators of heads")
