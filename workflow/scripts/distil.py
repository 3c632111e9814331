"""Rule distil: alternatives of blocks learn what their blocks say, beside them."""

import autotailor
import pandas as pd
from stage import stage

from autotailor.agreement import check_pixels
from autotailor import artifacts, data, finetuning

HEAD = ["epoch", "loss", "lr"]

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    check_pixels(net.graph.given, net.name, this.params["data"])
    splits = data.load(this.params["data"])
    this.uses(splits, "train", "validation")
    config = finetuning.DistilConfig.from_section(this.params["distil"])
    result = finetuning.distil(net, splits, config, this.work, this.record, this.work.parent / "branches")
    with artifacts.atomic(snakemake.output.supernet) as path:
        result.net.save(path)
    with artifacts.atomic(snakemake.output.history) as path:
        pd.DataFrame(result.history or None, columns=None if result.history else HEAD).to_csv(path, index=False)
    errors = {choice.replace(":", "_"): pair for choice, pair in result.errors.items()}
    metrics = {f"error_{choice}_closed_form": before for choice, (before, _) in errors.items()}
    metrics |= {f"error_{choice}_trained": after for choice, (_, after) in errors.items()}
    if result.on_path:
        metrics["error_on_path_alone"], metrics["error_on_path_trained"] = result.on_path
    artifacts.write_json(snakemake.output.metrics, metrics)
    this.run.metrics(metrics)
    said = ", ".join(f"{choice} {before:.3f} to {after:.3f}" for choice, (before, after) in result.errors.items())
    kept = f"; {result.kept} of them were no better and stay in closed form" if result.kept else ""
    known = f"; {result.reused} of them had been trained before" if result.reused else ""
    path = "; in SubNets {:.3f} to {:.3f}".format(*result.on_path) if result.on_path else ""
    told = f"errors of alternatives: {said}{kept}{known}{path}" if said else "no alternative can be trained by itself"
    this.tell(told)
