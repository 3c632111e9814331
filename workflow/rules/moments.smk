rule moments:
    input:
        supernet="results/{model}/compiled.pt",
    output:
        supernet="results/{model}/moments.pt",
        metrics="results/{model}/moments.json",
        provenance="results/{model}/provenance/moments.json",
    log:
        "logs/{model}/moments.log",
    benchmark:
        "logs/{model}/moments.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: cores("moments")
    resources:
        **on_cluster("moments"),
    params:
        sections=sections("training_data", "moments", "calibration", "threads"),
        code=code("moments"),
    message:
        "moments: what the weights read, from which slices follow in closed form"
    script:
        "../scripts/moments.py"
