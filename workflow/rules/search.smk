rule search:
    input:
        supernet="results/{model}/supernet.pt",
        lut="results/{model}/{device}/lut.csv",
        sensitivity="results/{model}/sensitivity.csv",
        baseline="results/{model}/sensitivity.json",
    output:
        pareto=report(
            "results/{model}/{device}/pareto.csv",
            caption="../report/pareto.rst",
            category="Front",
        ),
        yardstick="results/{model}/{device}/search.json",
        candidates="results/{model}/{device}/candidates.csv",
        front="results/{model}/{device}/front.json",
        provenance="results/{model}/{device}/provenance/search.json",
    log:
        "logs/{model}/{device}/search.log",
    benchmark:
        "logs/{model}/{device}/search.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: SHARING_THREADS
    params:
        sections=sections(
            "search",
            "budgets",
            "runtime",
            "data",
            "sensitivity",
            "calibration",
            "threads",
        ),
        code=code("search"),
    message:
        "search: the Pareto front of latency and accuracy"
    script:
        "../scripts/search.py"
