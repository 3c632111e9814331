POOLED = [
    device
    for device in MEASURED
    if of_device(device)["device"]["runtime"].startswith("ncnn")
]


def pools(wildcards):
    """The pools of all pairs whose device runs ncnn."""
    found = [
        f"results/{pair.model}/{pair.device}/pool"
        for pair in MATRIX.pairs
        if pair.device in POOLED
    ]
    if not found:
        raise WorkflowError(
            f"autotailor: ncnn runs on none of the devices {', '.join(DEVICES)}, and the members of a pool are networks "
            "of ncnn; name another device, for instance device=host"
        )
    return found


rule pool:
    input:
        pools,


if POOLED:

    rule make_pool:
        input:
            supernet="results/{model}/supernet.pt",
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
                "accelerator",
            ),
            code=code("make_pool"),
        message:
            "make_pool: SubNets of the front that share one file of weights"
        script:
            "../scripts/make_pool.py"
