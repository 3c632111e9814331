rule export:
    input:
        supernet="results/{model}/supernet.pt",
        chosen="results/{model}/{device}/polish.json",
        polished="results/{model}/{device}/polished.pt",
    output:
        **{
            f"{name}_{kind}": f"results/{{model}}/{{device}}/exports/{name}/{file}"
            for name in EXPORTS
            for kind, file in (EXPORTED | NCNN_FILES).items()
        },
        provenance="results/{model}/{device}/provenance/export.json",
    log:
        "logs/{model}/{device}/export.log",
    benchmark:
        "logs/{model}/{device}/export.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: cores("export")
    resources:
        **on_cluster("export"),
    params:
        sections=sections("data", "calibration", "tolerance", "accelerator"),
        code=code("export"),
    message:
        "export: the chosen SubNets as ONNX, ncnn and PyTorch"
    script:
        "../scripts/export.py"
