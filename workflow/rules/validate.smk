rule validate:
    input:
        supernet="results/{model}/compiled.pt",
        lut="results/{model}/{device}/lut.csv",
    output:
        validation=report(
            "results/{model}/{device}/validation.csv",
            caption="../report/validation.rst",
            category="Latency",
        ),
        provenance="results/{model}/{device}/provenance/validate.json",
    log:
        "logs/{model}/{device}/validate.log",
    benchmark:
        "logs/{model}/{device}/validate.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: cores("validate", measuring_threads)
    resources:
        **ON_DEVICE,
        **on_cluster("validate"),
    params:
        sections=sections("device", "imported", "validate"),
        code=code("validate"),
    message:
        "validate: whole SubNets against the sum of their operators"
    script:
        "../scripts/validate.py"
