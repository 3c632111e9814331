"""Rule finetune: weight-shared training of the SuperNet."""

import autotailor
import pandas as pd
from stage import stage

from autotailor.agreement import check_pixels
from autotailor import accuracy, artifacts, data, finetuning, task

HEAD = ["epoch", "loss", "lr"]

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    check_pixels(net.graph.given, net.name, this.params["data"])
    splits = accuracy.with_labels(data.load(this.params["data"]), net, this.params["finetune"]["accelerator"])
    this.uses(splits, "train", "validation")
    config = finetuning.FinetuneConfig.from_section(this.params["finetune"])
    firsts = [data.load(stage.data) for stage in config.stages]
    for first in firsts:
        this.uses(first, "train")
    begun = finetuning.begin(net, firsts, splits, config, this.work, this.record)
    result = finetuning.finetune(net, splits, config, this.work, this.record, begun)
    if this.is_first:
        this.run.metrics(result.metrics)
        with artifacts.atomic(snakemake.output.supernet) as path:
            result.net.save(path)
        with artifacts.atomic(snakemake.output.history) as path:
            pd.DataFrame(result.history or None, columns=None if result.history else HEAD).to_csv(path, index=False)
        artifacts.write_json(snakemake.output.metrics, result.metrics)
        ends = [f"{name} {result.metrics[f'{name}_validation_accuracy']:.1f} %" for name in ("largest", "smallest")]
        untrained = "" if result.history else "nothing was trained (finetune.epochs is 0); "
        this.tell(f"{untrained}{task.score_of(splits).mean} on the validation set: {', '.join(ends)}")
