rule validate:
    input:
        supernet=RESULTS + "/{model}/compiled.pt",
        lut=RESULTS + "/{model}/{device}/lut.csv",
    output:
        validation=report(
            RESULTS + "/{model}/{device}/validation.csv",
            caption="../report/validation.rst",
            category="Latency",
        ),
        provenance=RESULTS + "/{model}/{device}/provenance/validate.json",
    log:
        LOGS + "/{model}/{device}/validate.log",
    benchmark:
        LOGS + "/{model}/{device}/validate.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: MEASURING_THREADS
    resources:
        **{f"device_{DEVICE}": 1},
    params:
        sections=sections("device", "validate"),
        code=code("compiler", "profiling"),
    message:
        "validate: whole SubNets against the sum of their operators"
    script:
        "../scripts/validate.py"
