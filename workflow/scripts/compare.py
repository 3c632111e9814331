"""Rule compare: the original network scaled uniformly and trained alone."""

from pathlib import Path

import autotailor
import pandas as pd
from stage import stage

from autotailor import accuracy, artifacts, data, finetuning, profiling, search
from autotailor.measurement import comparison

with stage(snakemake) as this:
    training = finetuning.FinetuneConfig.from_section(this.params["finetune"])
    seen = [artifacts.read_json(path)["images"] for path in snakemake.input.training]
    cost = search.cost_of_device(this.params["device"])
    original = autotailor.load(snakemake.input.original)
    splits = accuracy.with_labels(data.load(this.params["data"]), original, this.params["finetune"]["accelerator"])
    this.uses(splits, "train", "test")
    table = comparison.compare(
        original,
        splits,
        comparison.CompareConfig.from_section(this.params["compare"]),
        training,
        summary=pd.read_csv(snakemake.input.summary),
        images=int(sum(seen)),
        cost=cost,
        device=profiling.DeviceConfig.from_section(this.params["device"]) if cost.is_measured else None,
        lut=profiling.LUT.read(Path(snakemake.input.lut)) if cost.is_measured else None,
        workdir=this.work,
    )
    with artifacts.atomic(snakemake.output.comparison) as path:
        table.to_csv(path, index=False)
    for row in table.to_dict("records"):
        keys = (cost.reached, "accuracy_measured")
        this.run.metrics({f"{row['name']}/{key}": row[key] for key in keys}, step=row["seed"])
