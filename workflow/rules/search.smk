rule search:
    input:
        supernet=RESULTS + "/{model}/supernet.pt",
        lut=RESULTS + "/{model}/{device}/lut.csv",
        sensitivity=RESULTS + "/{model}/sensitivity.csv",
        baseline=RESULTS + "/{model}/sensitivity.json",
    output:
        pareto=report(
            RESULTS + "/{model}/{device}/pareto.csv",
            caption="../report/pareto.rst",
            category="Front",
        ),
        yardstick=RESULTS + "/{model}/{device}/search.json",
        front=RESULTS + "/{model}/{device}/front.json",
        contributors=RESULTS + "/{model}/{device}/contributors.csv",
        provenance=RESULTS + "/{model}/{device}/provenance/search.json",
    log:
        LOGS + "/{model}/{device}/search.log",
    benchmark:
        LOGS + "/{model}/{device}/search.tsv"
    conda:
        "../envs/autotailor.yaml"
    params:
        sections=sections("search", "budgets", "runtime"),
        code=code("compiler", "search", "sensitivity", "profiling"),
    message:
        "search: the Pareto front of latency and accuracy"
    script:
        "../scripts/search.py"
