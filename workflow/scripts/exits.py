"""Rule exits: early exits of the exported SubNets, with heads, files, and thresholds for each budget."""

from dataclasses import replace
from pathlib import Path

import autotailor
from stage import stage

from autotailor import accuracy, artifacts, data, profiling, search
from autotailor.compute.accelerator import resolve
from autotailor.exits import costs, files, making, pooled
from autotailor.exits.config import ExitsConfig
from autotailor.export import deployable
from autotailor.export.files import first_images
from autotailor.finetuning import polishing
from autotailor.measurement.config import Effort
from autotailor.pool.config import PoolConfig
from autotailor.pool.making import origin_of

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    config = ExitsConfig.from_section(this.params["exits"])
    polish = polishing.PolishConfig.from_section(this.params["polish"])
    splits = accuracy.with_labels(data.load(this.params["data"]), snakemake.input.original)
    this.uses(splits, "train", "validation", "test")
    calibration = accuracy.CalibrationConfig.from_section(this.params["calibration"])
    module = net.module().eval().to(resolve(this.params["accelerator"]))
    chosen = polishing.read_exported(Path(snakemake.input.chosen), Path(snakemake.input.polished), net)
    headed, subnets = {}, {name: each.subnet for name, each in chosen.items()}
    for name, each in chosen.items():
        graph = deployable(net, each, module, splits, calibration).graph
        headed[name] = making.add_heads(net, each.subnet, graph, splits, config, polish, this.work / name)
    cost = search.cost_of_device(this.params["device"])
    device = profiling.DeviceConfig.from_section(this.params["device"]) if cost.is_measured else None
    lut = profiling.LUT.read(Path(snakemake.input.lut)) if device else None
    asked = this.params.get("early", {}).get("budgets", {})
    effort = Effort.from_section(this.params["measure"])

    def price(networks):
        if lut is None:
            counts = {name: costs.counted(network) for name, network in networks.items()}
            return costs.Priced(counts, costs.COUNTED)
        predicted = costs.by_table(net, subnets, networks, lut, profiling.fusion_rules(device))
        if this.params["imported"]:
            return predicted
        found = costs.measured(networks, device, lut, effort.rounds, effort.seconds, this.work / "networks")
        return replace(found, energy=predicted.energy)

    is_ncnn = device is not None and device.runtime.startswith("ncnn")

    def write(name, network, folder):
        runtime = profiling.open_runtime(device) if is_ncnn else None
        images = first_images(network.graph, splits.test)
        return files.write_files(network, net.names, folder, images, runtime, this.params["tolerance"])

    with artifacts.atomic(snakemake.output.files) as folder:
        folder.mkdir()
        result = making.make(headed, splits, config, price, write, folder, cost.unit, asked)
        if is_ncnn and any(each.names for each in headed.values()):
            how = PoolConfig(tolerance=this.params["tolerance"])
            origin = origin_of(snakemake.wildcards.model, device, how, splits.preparation, splits.test.task)
            images = {name: first_images(each.network.graph, splits.test) for name, each in headed.items()}
            pooled.pool_exits(folder, net, subnets, headed, result, images, lut, device, origin)
    artifacts.write_json(snakemake.output.exits, result)
    gains = {name: row for name, row in result["budgets"].items() if row.get("gain") is not None}
    this.run.metrics({f"gain_{name.split()[0]}": row["gain"] for name, row in gains.items()})
    sure = [name for name, row in gains.items() if row["gain"] > 2 * row["gain_error"]]
    this.tell(f"exits of {len(headed)} SubNets; accuracy rises surely at {len(sure)} of {len(gains)} budgets")
