rule fleet:
    input:
        configurations=compared("configuration.json"),
        summaries=compared("summary.csv"),
        timings=compared("timings.csv"),
        supernets=[f"results/{model}/supernet.pt" for model in MODELS],
    output:
        **{
            name: f"results/fleet/{FLEET}/{name}.csv"
            for name in ("best", "front", "exports", "single", "effort")
        },
        page=report(
            f"results/fleet/{FLEET}/index.html",
            caption="../report/fleet.rst",
            category="Fleet",
        ),
        provenance=f"results/fleet/{FLEET}/provenance/fleet.json",
    log:
        f"logs/fleet/{FLEET}.log",
    conda:
        "../envs/autotailor.yaml"
    threads: cores("fleet")
    resources:
        **on_cluster("fleet"),
    params:
        sections={"models": MODELS, "devices": DEVICES},
        code=code("fleet"),
    message:
        "fleet: compares all networks on all devices"
    script:
        "../scripts/fleet.py"
