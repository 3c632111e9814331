rule profile:
    input:
        operators="results/{model}/{device}/operators.csv",
        supernet="results/{model}/compiled.pt",
    output:
        lut="results/{model}/{device}/lut.csv",
        provenance="results/{model}/{device}/provenance/profile.json",
    log:
        "logs/{model}/{device}/profile.log",
    benchmark:
        "logs/{model}/{device}/profile.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: cores("profile", measuring_threads)
    resources:
        **ON_DEVICE,
        **on_cluster("profile"),
    params:
        sections=sections("device", "profile", "validate", "imported"),
        code=code("profile"),
    message:
        "profile: measures each operator on {wildcards.device}"
    script:
        "../scripts/profile.py"
