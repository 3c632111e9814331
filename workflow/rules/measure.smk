rule measure:
    input:
        original=RESULTS + "/{model}/compiled.pt",
        supernet=RESULTS + "/{model}/supernet.pt",
        lut=RESULTS + "/{model}/{device}/lut.csv",
        sensitivity=RESULTS + "/{model}/sensitivity.csv",
        baseline=RESULTS + "/{model}/sensitivity.json",
        front=RESULTS + "/{model}/{device}/front.json",
        onnx=expand(
            RESULTS + "/{model}/{device}/exports/{name}/model.onnx",
            name=EXPORTS,
            allow_missing=True,
        ),
        param=expand(
            RESULTS + "/{model}/{device}/exports/{name}/model.ncnn.param",
            name=EXPORTS,
            allow_missing=True,
        ),
    output:
        summary=report(
            RESULTS + "/{model}/{device}/summary.csv",
            caption="../report/summary.rst",
            category="Front",
        ),
        provenance=RESULTS + "/{model}/{device}/provenance/measure.json",
    log:
        LOGS + "/{model}/{device}/measure.log",
    benchmark:
        LOGS + "/{model}/{device}/measure.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: MEASURING_THREADS
    resources:
        **{f"device_{DEVICE}": 1},
    params:
        sections=sections("device", "data"),
        code=code("compiler", "profiling", "sensitivity", "export", "data", "summary"),
    message:
        "measure: the exported SubNets on {wildcards.device}"
    script:
        "../scripts/measure.py"
