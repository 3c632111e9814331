rule compare:
    input:
        original="results/{model}/compiled.pt",
        training=training_metrics,
        summary="results/{model}/{device}/summary.csv",
        lut=table_of_device,
    output:
        comparison=report(
            "results/{model}/{device}/compare.csv",
            caption="../report/compare.rst",
            category="Front",
        ),
        provenance="results/{model}/{device}/provenance/compare.json",
    log:
        "logs/{model}/{device}/compare.log",
    benchmark:
        "logs/{model}/{device}/compare.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: cores("compare", measuring_threads)
    resources:
        **ON_DEVICE,
        **on_cluster("compare"),
    params:
        sections=sections("data", "finetune", "compare", "device", "threads"),
        code=code("compare"),
    message:
        "compare: the network scaled uniformly and trained alone"
    script:
        "../scripts/compare.py"
