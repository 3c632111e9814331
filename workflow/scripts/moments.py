"""Rule moments: what the weights of a network that arrives trained read; slices follow from it in closed form."""

import autotailor
from stage import stage

from autotailor.agreement import check_pixels
from autotailor import accuracy, artifacts, data

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    check_pixels(net.graph.given, net.name, this.params["data"])
    splits = data.load(this.params["data"])
    this.uses(splits, "train")
    config = accuracy.MomentsConfig.from_section(this.params["moments"])
    calibration = accuracy.CalibrationConfig.from_section(this.params["calibration"])
    result = accuracy.prepare(net, splits, config, calibration)
    with artifacts.atomic(snakemake.output.supernet) as path:
        result.net.save(path)
    found, share = result.net.elastic.moments, result.net.elastic.recalibrated
    size = found.size / 2**20 if found else 0.0
    metrics = {"size_mb": size, "recalibrated": share, "streams_rotated": len(result.net.rotations)}
    metrics |= {f"divergence_{each:g}": value for each, value in result.divergences.items()}
    artifacts.write_json(snakemake.output.metrics, metrics)
    this.run.metrics(metrics)
    this.tell(f"moments of {config.images} pictures, {size:.0f} MiB" if found else "slices stay as they stand")
