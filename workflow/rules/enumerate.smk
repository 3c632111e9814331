rule enumerate:
    input:
        supernet=RESULTS + "/{model}/compiled.pt",
    output:
        operators=RESULTS + "/{model}/{device}/operators.csv",
        provenance=RESULTS + "/{model}/{device}/provenance/enumerate.json",
    log:
        LOGS + "/{model}/{device}/enumerate.log",
    benchmark:
        LOGS + "/{model}/{device}/enumerate.tsv"
    conda:
        "../envs/autotailor.yaml"
    params:
        sections=sections("runtime"),
        code=code("compiler", "enumeration"),
    message:
        "enumerate: the unique fused operators of the space"
    script:
        "../scripts/enumerate.py"
