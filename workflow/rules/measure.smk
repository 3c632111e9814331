rule measure:
    input:
        **measured(
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
            name=EXPORTS,
            allow_missing=True,
        ),
        converted=expand(
            "results/{model}/{device}/exports/{name}/{file}",
            name=EXPORTS,
            file=NCNN_FILES.values(),
            allow_missing=True,
        ),
    output:
        **measured(contributors="results/{model}/{device}/contributors.csv"),
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
    conda:
        "../envs/autotailor.yaml"
    threads: cores("measure", MEASURING_THREADS)
    resources:
        **measured(**{f"device_{DEVICE}": 1}),
        **on_cluster("measure"),
    params:
        sections=sections("device", "imported", "data", "calibration", "measure"),
        code=code("measure"),
    message:
        (
            "measure: the exported SubNets on {wildcards.device}"
            if COST.is_measured
            else f"measure: the {SCORE.name} of the exported SubNets"
        )
    script:
        "../scripts/measure.py"
