for kind in KINDS:

    rule:
        name:
            kind.named("measure")
        input:
            **kind.measured(
                lut="results/{model}/{device}/lut.csv",
                confirmed="results/{model}/{device}/confirmed.csv",
            ),
            original="results/{model}/compiled.pt",
            supernet="results/{model}/supernet.pt",
            accuracy="results/{model}/{device}/accuracy.json",
            chosen="results/{model}/{device}/polish.json",
            polished="results/{model}/{device}/polished.pt",
            onnx=expand(
                "results/{model}/{device}/exports/{name}/model.onnx",
                name=kind.exports,
                allow_missing=True,
            ),
            converted=expand(
                "results/{model}/{device}/exports/{name}/{file}",
                name=kind.exports,
                file=kind.converted,
                allow_missing=True,
            ),
        output:
            **kind.measured(contributors="results/{model}/{device}/contributors.csv"),
            summary=report(
                "results/{model}/{device}/summary.csv",
                caption="../report/summary.rst",
                category="Front",
            ),
            provenance="results/{model}/{device}/provenance/measure.json",
        log:
            "logs/{model}/{device}/measure.log",
        benchmark:
            "logs/{model}/{device}/measure.tsv"
        wildcard_constraints:
            **kind.pairs,
        conda:
            "../envs/autotailor.yaml"
        threads: cores("measure", measuring_threads)
        resources:
            **ON_DEVICE,
            **on_cluster("measure"),
        params:
            sections=sections(
                "device", "imported", "data", "calibration", "measure", "budgets"
            ),
            code=code("measure"),
        message:
            (
                "measure: the exported SubNets on {wildcards.device}"
                if kind.is_measured
                else "measure: evaluates the exported SubNets"
            )
        script:
            "../scripts/measure.py"
