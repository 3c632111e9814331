rule pretrain:
    output:
        weights="results/{model}/pretrained.pt",
        history="results/{model}/pretrain_history.csv",
        metrics="results/{model}/pretrain.json",
        provenance="results/{model}/provenance/pretrain.json",
    log:
        "logs/{model}/pretrain.log",
    benchmark:
        "logs/{model}/pretrain.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: cores("pretrain", pretraining_threads)
    resources:
        **on_cluster("pretrain"),
    params:
        sections=sections("network", "pretrain", "training_data", "threads"),
        code=code("pretrain"),
    message:
        "pretrain: trains the original network {wildcards.model}"
    script:
        "../scripts/pretrain.py"
