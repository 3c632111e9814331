"""Rule profile: measures each unique operator once on the device, or takes it from an imported table."""

from collections import Counter
from pathlib import Path

import autotailor
from stage import stage

from autotailor import artifacts, enumeration, profiling
from autotailor.profiling.networks.validation import validation_subnets

with stage(snakemake) as this:
    operators = enumeration.read_operators(Path(snakemake.input.operators))
    heads = enumeration.read_operators(Path(snakemake.input.heads)) if snakemake.input.heads else ()
    own, further = ([row.feature for row in rows] for rows in (operators, heads))
    features = list(dict.fromkeys([*own, *further]))
    device = profiling.DeviceConfig.from_section(this.params["device"] | this.params["profile"])
    where = snakemake.config["profile"][snakemake.wildcards.device]
    if this.params["imported"]:
        lut = profiling.read_table(Path(where["lut"]), device).select(features, set(further) - set(own))
        lacking = len(set(features) - {row.feature for row in lut})
        if lacking:  # tables of before do not have operators of exits
            this.tell(f"the table lacks {lacking} operators of exits, which count by their multiply-accumulates")
        this.tell(f"{len(features) - lacking:,} operators are taken from {where['lut']} and not measured here")
    else:
        uses = Counter({row.feature: row.places for row in operators})
        uses.update({row.feature: row.places for row in heads})
        places = [uses[feature] for feature in features]
        net = autotailor.load(snakemake.input.supernet)
        judged = validation_subnets(net.space, this.params["validate"]["subnets"], this.params["validate"]["seed"])
        lut = profiling.profile(features, device, Path(where["store"]), places=places, net=net, avoid=judged)
    with artifacts.atomic(snakemake.output.lut) as path:
        lut.write(path)
    if not this.params["imported"]:
        this.tell(f"{len(lut):,} operators measured")
    errors = [error / lut.latencies()[key] for key, error in lut.standard_errors().items()]
    this.run.metrics({"operators": len(lut), "mean_relative_standard_error": sum(errors) / len(errors)})
