"""Rule train_pool: the members of the pool, trained on together, with weights that they share."""

from pathlib import Path

import autotailor
import pandas as pd
from stage import stage

from autotailor import accuracy, artifacts, data, search, task
from autotailor.finetuning import FinetuneConfig, joint
from autotailor.pool.exported import check_network
from autotailor.pool.members import members_of

with stage(snakemake) as this:
    net, original = (autotailor.load(path) for path in (snakemake.input.supernet, snakemake.input.original))
    check_network(net)
    config = FinetuneConfig.from_section(this.params["train_pool"])
    splits = accuracy.with_labels(data.load(this.params["data"]), original, config.accelerator)
    this.uses(splits, "train", "validation")
    front = search.Front.read(Path(snakemake.input.pareto), net.space)
    _, members = members_of(front, **this.params["members"])
    result = joint.train_jointly(net, original, splits, members, config, this.work, this.record)
    if this.is_first:
        with artifacts.atomic(snakemake.output.supernet) as path:
            result.net.save(path)
        with artifacts.atomic(snakemake.output.history) as path:
            pd.DataFrame(result.history).to_csv(path, index=False)
        artifacts.write_json(snakemake.output.training, result.document())
        this.run.metrics(result.metrics())
        this.tell(result.said(task.score_of(splits).mean))
