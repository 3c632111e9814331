rule enumerate:
    input:
        supernet="results/{model}/compiled.pt",
    output:
        operators="results/{model}/{device}/operators.csv",
        provenance="results/{model}/{device}/provenance/enumerate.json",
    log:
        "logs/{model}/{device}/enumerate.log",
    benchmark:
        "logs/{model}/{device}/enumerate.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: cores("enumerate")
    resources:
        **on_cluster("enumerate"),
    params:
        sections=sections("runtime"),
        code=code("enumerate"),
    message:
        "enumerate: the unique fused operators of the space"
    script:
        "../scripts/enumerate.py"
