"""Rule compile: the original network as a SuperNet."""

import autotailor
from stage import stage

from autotailor.compiler.check import check_space
from autotailor.compiler.numbers import check_numbers
from autotailor.ir.description import describe
from autotailor import artifacts

with stage(snakemake) as this:
    network = this.params["network"]
    weights = snakemake.input[0] if this.params["weights"] == "pretrain" else this.params["weights"]
    net = autotailor.compile(
        network["source"],
        this.params["space"],
        name=network["name"],
        resolution=network["resolution"],
        weights=weights,
        batch_norm=network.get("batch_norm", "auto"),
        num_classes=network["num_classes"],
        output=network.get("output"),
    )
    check_space(net)
    check_numbers(net)
    with artifacts.atomic(snakemake.output.onnx) as path:
        net.export_onnx(net.largest(), path)
    description = describe(net)
    artifacts.write_json(snakemake.output.space, description)
    with artifacts.atomic(snakemake.output.supernet) as path:
        net.save(path)
    this.tell(f"{int(description['distinct_variants']):,} SubNets")
    this.run.metrics({"modifications": net.space.num_modifications, "blocks": len(net.blocks)})
