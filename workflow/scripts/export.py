"""Rule export: one SubNet as ONNX, ncnn and PyTorch, compared with the SuperNet it came from."""

import tempfile
from pathlib import Path

import autotailor
from stage import stage

from autotailor import data, export, finetuning, profiling, search

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    subnet = search.read_budgets(Path(snakemake.input.front), net.space)[snakemake.wildcards.name]
    splits = data.load(this.params["data"])
    calibration = finetuning.CalibrationConfig.from_section(this.params["calibration"])
    statistics = finetuning.calibrate(net.module().eval(), subnet, splits, calibration)
    runtime = profiling.open_runtime(profiling.DeviceConfig.from_section(this.params["runtime"]))
    directory = Path(snakemake.output.subnet).resolve().parent
    with tempfile.TemporaryDirectory(prefix=f".{directory.name}.", dir=directory.parent) as folder:
        result = export.export(net, subnet, statistics, Path(folder), splits.test, runtime, this.params["tolerance"])
        for path in (Path(path).resolve() for path in snakemake.output):
            if path.parent == directory:
                (Path(folder) / path.name).replace(path)
    this.run.metrics(result.metrics())
