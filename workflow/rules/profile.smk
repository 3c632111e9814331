rule profile:
    input:
        operators=RESULTS + "/{model}/{device}/operators.csv",
    output:
        lut=RESULTS + "/{model}/{device}/lut.csv",
        provenance=RESULTS + "/{model}/{device}/provenance/profile.json",
    log:
        LOGS + "/{model}/{device}/profile.log",
    benchmark:
        LOGS + "/{model}/{device}/profile.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: MEASURING_THREADS
    resources:
        **{f"device_{DEVICE}": 1},
    params:
        sections=sections("device"),
        code=code("profiling"),
    message:
        "profile: measures each operator on {wildcards.device}"
    script:
        "../scripts/profile.py"
