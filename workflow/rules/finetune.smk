rule finetune:
    input:
        supernet=given,
    output:
        supernet="results/{model}/supernet.pt",
        history="results/{model}/finetune_history.csv",
        metrics="results/{model}/finetune.json",
        provenance="results/{model}/provenance/finetune.json",
    log:
        "logs/{model}/finetune.log",
    benchmark:
        "logs/{model}/finetune.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: cores("finetune", finetuning_threads)
    resources:
        **on_cluster("finetune"),
    params:
        sections=sections("training_data", "finetune", "threads"),
        code=code("finetune"),
    message:
        "finetune: trains the SuperNet's shared weights"
    script:
        "../scripts/finetune.py"
