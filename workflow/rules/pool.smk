rule pool:
    input:
        pools,


if POOLED:

    rule train_pool:
        input:
            supernet="results/{model}/supernet.pt",
            original="results/{model}/compiled.pt",
            pareto="results/{model}/{device}/pareto.csv",
        output:
            supernet="results/{model}/{device}/pool_supernet.pt",
            history="results/{model}/{device}/pool_history.csv",
            training="results/{model}/{device}/pool_training.json",
            provenance="results/{model}/{device}/provenance/train_pool.json",
        log:
            "logs/{model}/{device}/train_pool.log",
        benchmark:
            "logs/{model}/{device}/train_pool.tsv"
        wildcard_constraints:
            device=either(POOLED),
        conda:
            "../envs/autotailor.yaml"
        threads: cores("train_pool", finetuning_threads)
        resources:
            **on_cluster("train_pool"),
        params:
            sections=sections("data", "train_pool", "members", "threads"),
            code=code("train_pool"),
        message:
            "train_pool: trains the members of the pool on, which share their weights"
        script:
            "../scripts/train_pool.py"

    rule make_pool:
        input:
            supernet=weights_of_pool,
            original=teacher,
            training=training_of_pool,
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
