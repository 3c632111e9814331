rule compare:
    input:
        original=RESULTS + "/{model}/compiled.pt",
        training=training_metrics,
    output:
        comparison=report(
            RESULTS + "/{model}/{device}/compare.csv",
            caption="../report/compare.rst",
            category="Front",
        ),
        provenance=RESULTS + "/{model}/{device}/provenance/compare.json",
    log:
        LOGS + "/{model}/{device}/compare.log",
    benchmark:
        LOGS + "/{model}/{device}/compare.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: MEASURING_THREADS
    resources:
        **{f"device_{DEVICE}": 1},
    params:
        sections=sections("network", "data", "finetune", "compare", "device", "threads"),
        code=code("compiler", "finetuning", "profiling", "data", "zoo", "comparison"),
    message:
        "compare: the network scaled uniformly and trained alone"
    script:
        "../scripts/compare.py"
