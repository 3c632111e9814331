rule confirm:
    input:
        supernet="results/{model}/supernet.pt",
        original=teacher,
        lut="results/{model}/{device}/lut.csv",
        validation="results/{model}/{device}/validation.csv",
        pareto="results/{model}/{device}/pareto.csv",
        accuracy="results/{model}/{device}/accuracy.json",
        candidates="results/{model}/{device}/candidates.csv",
    output:
        confirmed="results/{model}/{device}/confirmed.csv",
        provenance="results/{model}/{device}/provenance/confirm.json",
    log:
        "logs/{model}/{device}/confirm.log",
    benchmark:
        "logs/{model}/{device}/confirm.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: cores("confirm", max(MEASURING_THREADS, SHARING_THREADS))
    resources:
        **{f"device_{DEVICE}": 1},
        **on_cluster("confirm"),
    params:
        sections=sections(
            "device",
            "imported",
            "search",
            "budgets",
            "confirm",
            "data",
            "sensitivity",
            "calibration",
            "threads",
        ),
        code=code("confirm"),
    message:
        "confirm: the candidates of each budget on {wildcards.device}"
    script:
        "../scripts/confirm.py"
