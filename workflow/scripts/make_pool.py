"""Rule make_pool: SubNets of the front that share one file of weights, each compared with the SuperNet."""

from pathlib import Path

import autotailor
from stage import stage

from autotailor import accuracy, artifacts, data, prediction, profiling, search, sensitivity
from autotailor.compute.accelerator import resolve
from autotailor.pool import making
from autotailor.pool.config import PoolConfig
from autotailor.pool.exported import check_network

with stage(snakemake) as this:
    config = PoolConfig.from_section(this.params["pool"])
    device = profiling.DeviceConfig.from_section(this.params["device"])
    making.check_device(device)
    net = autotailor.load(snakemake.input.supernet)
    check_network(net)
    training = artifacts.read_json(snakemake.input.training) if snakemake.input.training else None
    run = making.Run(
        net,
        search.Front.read(Path(snakemake.input.pareto), net.space),
        prediction.read_accuracy(Path(snakemake.input.accuracy), net.macs()),
        {} if training else search.read_candidates(Path(snakemake.input.confirmed), net.space).accuracies,
        profiling.LUT.read(Path(snakemake.input.lut)),
        device,
        training,
    )
    splits = data.load(this.params["data"])
    this.uses(splits, "train", "validation", "test")
    origin = making.origin_of(snakemake.wildcards.model, device, config, splits.preparation, splits.test.task)
    module = net.module().eval().to(resolve(this.params["accelerator"]))
    calibration = accuracy.CalibrationConfig.from_section(this.params["calibration"])
    export = making.exporter(net, module, splits, calibration, this.work / "members")
    measure = None if this.params["imported"] else making.timing(device, run.lut, config)
    settings = sensitivity.SensitivityConfig.from_section(this.params["sensitivity"], this.params["calibration"])

    def evaluate(subnets):
        """Accuracies of members that the run has not measured; it has learnt nothing of trained weights."""
        model = None if training else run.accuracy.model
        labelled = accuracy.with_labels(splits, snakemake.input.original, settings.accelerator)
        journal = this.work / "evaluations.jsonl"
        return sensitivity.measure_accuracies(net, labelled, subnets, settings, journal, model)

    document = making.make_pool(Path(snakemake.output.pool), run, origin, config, export, measure, evaluate)
    shared = sum(each["bytes"] for each in document["files"].values())
    largest = document["largest_member_bytes"]
    this.run.metrics({"members": len(document["members"]), "shared_bytes": shared, "largest_member_bytes": largest})
    this.tell(
        f"{len(document['members'])} members in {shared / 1e6:.3g} MB; the largest alone takes {largest / 1e6:.3g} MB"
    )
