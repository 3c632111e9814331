rule finetune:
    input:
        supernet=RESULTS + "/{model}/compiled.pt",
    output:
        supernet=RESULTS + "/{model}/supernet.pt",
        history=RESULTS + "/{model}/finetune_history.csv",
        metrics=RESULTS + "/{model}/finetune.json",
        provenance=RESULTS + "/{model}/provenance/finetune.json",
    log:
        LOGS + "/{model}/finetune.log",
    benchmark:
        LOGS + "/{model}/finetune.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: TRAINING_THREADS
    params:
        sections=sections("data", "finetune", "threads"),
        code=code("compiler", "finetuning", "data"),
    message:
        "finetune: trains the SuperNet's shared weights"
    script:
        "../scripts/finetune.py"
