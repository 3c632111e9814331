"""Rule export: the chosen SubNets as ONNX, ncnn and PyTorch, each compared with the SubNet in PyTorch."""

import tempfile
from pathlib import Path

import autotailor
from stage import stage

from autotailor import accuracy, data, export, profiling
from autotailor.compute.accelerator import resolve
from autotailor.finetuning import polishing

with stage(snakemake) as this:
    net = autotailor.load(snakemake.input.supernet)
    splits = data.load(this.params["data"])
    this.uses(splits, "train", "test")
    module = net.module().eval().to(resolve(this.params["accelerator"]))
    calibration = accuracy.CalibrationConfig.from_section(this.params["calibration"])
    runtime = profiling.exporting_runtime()
    needed = set(runtime.files) <= {Path(path).name for path in snakemake.output}
    chosen = polishing.read_exported(Path(snakemake.input.chosen), Path(snakemake.input.polished), net)
    transparent = accuracy.find_transparent(splits.test, splits.background, labelled=splits.labelled)
    for name, each in chosen.items():
        network = export.deployable(net, each, module, splits, calibration)
        directory = Path(snakemake.output[f"{name}_subnet"]).resolve().parent
        with tempfile.TemporaryDirectory(prefix=".subnet.json.", dir=directory) as folder:
            result = export.export(
                network,
                Path(folder),
                splits.test,
                runtime,
                this.params["tolerance"],
                needed=needed,
                preparation=splits.preparation,
                transparent=transparent,
            )
            for name_of_file in runtime.files:  # an earlier run may have written them
                (directory / name_of_file).unlink(missing_ok=True)
            for path in Path(folder).iterdir():
                path.replace(directory / path.name)
        this.run.metrics({f"{name}/{key}": value for key, value in result.metrics().items()})
    this.tell(f"{len(chosen)} SubNets exported, and every file verified")
