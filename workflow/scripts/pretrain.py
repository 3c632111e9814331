"""Rule pretrain: trains the original network from scratch, where no trained weights are available."""

import pandas as pd
import torch
from stage import stage

from autotailor import artifacts, data, finetuning, task
from autotailor.compiler.sources.network import create_network
from autotailor.compiler.sources.outputs import take_output

with stage(snakemake) as this:
    network = create_network(this.params["network"]["source"], num_classes=this.params["network"]["num_classes"])
    if (logits := this.params["network"].get("output")) is not None:  # the first of a tuple is 0
        take_output(network, logits)
    splits = data.load(this.params["data"])
    this.uses(splits, "train", "validation")
    config = finetuning.PretrainConfig.from_section(this.params["pretrain"])
    result = finetuning.pretrain(network, splits, config, this.work, this.record)
    if this.is_first:
        this.run.metrics(result.metrics)
        with artifacts.atomic(snakemake.output.weights) as path:
            torch.save(result.state_dict, path)
        with artifacts.atomic(snakemake.output.history) as path:
            pd.DataFrame(result.history).to_csv(path, index=False)
        artifacts.write_json(snakemake.output.metrics, result.metrics)
        this.tell(f"{task.score_of(splits).name} {result.metrics['validation_accuracy']:.1f} % on the validation set")
