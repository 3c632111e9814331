rule sensitivity:
    input:
        supernet="results/{model}/supernet.pt",
        original=teacher,
    output:
        sensitivity=report(
            "results/{model}/sensitivity.csv",
            caption="../report/sensitivity.rst",
            category=score_title,
        ),
        baseline="results/{model}/sensitivity.json",
        evaluations="results/{model}/evaluations.csv",
        validation=report(
            "results/{model}/accuracy_validation.csv",
            caption="../report/accuracy_validation.rst",
            category=score_title,
        ),
        provenance="results/{model}/provenance/sensitivity.json",
    log:
        "logs/{model}/sensitivity.log",
    benchmark:
        "logs/{model}/sensitivity.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: cores("sensitivity", sharing_threads)
    resources:
        **on_cluster("sensitivity"),
    params:
        sections=sections("data", "sensitivity", "calibration", "threads"),
        code=code("sensitivity"),
    message:
        "sensitivity: evaluates single modifications and other SubNets"
    script:
        "../scripts/sensitivity.py"
