"""Rule polish: the best SubNets of each budget, trained for a few epochs with weights of their own."""

from pathlib import Path

import autotailor
from stage import stage

from autotailor import accuracy, artifacts, data, search
from autotailor.finetuning import FinetuneConfig, polishing

with stage(snakemake) as this:
    net, original = (autotailor.load(path) for path in (snakemake.input.supernet, snakemake.input.original))
    candidates = search.read_candidates(Path(snakemake.input.candidates), net.space)
    splits = accuracy.with_labels(data.load(this.params["data"]), original, this.params["polish"]["accelerator"])
    this.uses(splits, "train", "validation")
    joint = this.params.get("polish_joint")
    chosen, table = polishing.polish(
        net,
        original,
        splits,
        candidates.contests,
        {id_: found.accuracy for id_, found in candidates.accuracies.items()},
        polishing.PolishConfig.from_section(this.params["polish"]),
        this.work,
        {id_: found.posterior for id_, found in candidates.accuracies.items()},
        FinetuneConfig.from_section(joint) if joint else None,
        this.record,
    )
    if this.is_first:
        baseline = artifacts.read_json(snakemake.input.baseline)["accuracy"]
        named = {"largest": polishing.Polished(net.largest(), baseline), **chosen}
        polishing.write_exported(Path(snakemake.output.chosen), Path(snakemake.output.polished), named)
        with artifacts.atomic(snakemake.output.race) as path:
            table.to_csv(path, index=False)
        trained = sum(each.polished is not None for each in named.values())
        this.tell(f"{trained} of {len(named)} SubNets get weights of their own")
        for name, each in named.items():
            reached = each.inherited if each.polished is None else each.polished
            this.run.metrics({f"{name}/accuracy_inherited": each.inherited, f"{name}/accuracy_validation": reached})
