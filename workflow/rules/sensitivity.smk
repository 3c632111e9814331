rule sensitivity:
    input:
        supernet=RESULTS + "/{model}/supernet.pt",
    output:
        sensitivity=report(
            RESULTS + "/{model}/sensitivity.csv",
            caption="../report/sensitivity.rst",
            category="Accuracy",
        ),
        baseline=RESULTS + "/{model}/sensitivity.json",
        validation=report(
            RESULTS + "/{model}/accuracy_validation.csv",
            caption="../report/accuracy_validation.rst",
            category="Accuracy",
        ),
        provenance=RESULTS + "/{model}/provenance/sensitivity.json",
    log:
        LOGS + "/{model}/sensitivity.log",
    benchmark:
        LOGS + "/{model}/sensitivity.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: TRAINING_THREADS
    params:
        sections=sections("data", "sensitivity", "calibration", "threads"),
        code=code("compiler", "sensitivity", "finetuning", "data"),
    message:
        "sensitivity: the accuracy drop of each single modification"
    script:
        "../scripts/sensitivity.py"
