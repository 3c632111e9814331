rule pool:
    input:
        pools,


if POOLED:

    rule make_pool:
        input:
            supernet="results/{model}/supernet.pt",
            original=teacher,
            lut="results/{model}/{device}/lut.csv",
            pareto="results/{model}/{device}/pareto.csv",
            accuracy="results/{model}/{device}/accuracy.json",
            confirmed="results/{model}/{device}/confirmed.csv",
        output:
            pool=directory("results/{model}/{device}/pool"),
            provenance="results/{model}/{device}/provenance/make_pool.json",
        log:
            "logs/{model}/{device}/make_pool.log",
        benchmark:
            "logs/{model}/{device}/make_pool.tsv"
        wildcard_constraints:
            device=either(POOLED),
        conda:
            "../envs/autotailor.yaml"
        threads: cores("make_pool", measuring_threads)
        resources:
            **ON_DEVICE,
            **on_cluster("make_pool"),
        params:
            sections=sections(
                "device",
                "imported",
                "data",
                "calibration",
                "pool",
                "sensitivity",
                "accelerator",
                "threads",
            ),
            code=code("make_pool"),
        message:
            "make_pool: SubNets of the front that share one file of weights"
        script:
            "../scripts/make_pool.py"
