rule pretrain:
    output:
        weights=RESULTS + "/{model}/pretrained.pt",
        history=RESULTS + "/{model}/pretrain_history.csv",
        metrics=RESULTS + "/{model}/pretrain.json",
        provenance=RESULTS + "/{model}/provenance/pretrain.json",
    log:
        LOGS + "/{model}/pretrain.log",
    benchmark:
        LOGS + "/{model}/pretrain.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: TRAINING_THREADS
    params:
        sections=sections("network", "pretrain", "data", "threads"),
        code=code("finetuning", "data", "zoo"),
    message:
        "pretrain: trains the original network {wildcards.model}"
    script:
        "../scripts/pretrain.py"
