rule polish:
    input:
        supernet="results/{model}/supernet.pt",
        original="results/{model}/compiled.pt",
        baseline="results/{model}/sensitivity.json",
        candidates=candidates,
    output:
        chosen="results/{model}/{device}/polish.json",
        polished="results/{model}/{device}/polished.pt",
        race="results/{model}/{device}/polish.csv",
        provenance="results/{model}/{device}/provenance/polish.json",
    log:
        "logs/{model}/{device}/polish.log",
    benchmark:
        "logs/{model}/{device}/polish.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: cores("polish", polishing_threads)
    resources:
        **on_cluster("polish"),
    params:
        sections=sections("data", "polish", "polish_joint", "threads"),
        code=code("polish"),
    message:
        "polish: trains the best SubNets of each budget with weights of their own"
    script:
        "../scripts/polish.py"
