for kind in KINDS:

    rule:
        name:
            kind.named("export")
        input:
            supernet="results/{model}/supernet.pt",
            chosen="results/{model}/{device}/polish.json",
            polished="results/{model}/{device}/polished.pt",
        output:
            **{
                f"{name}_{key}": f"results/{{model}}/{{device}}/exports/{name}/{file}"
                for name in kind.exports
                for key, file in kind.files.items()
            },
            provenance="results/{model}/{device}/provenance/export.json",
        log:
            "logs/{model}/{device}/export.log",
        benchmark:
            "logs/{model}/{device}/export.tsv"
        wildcard_constraints:
            **kind.pairs,
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
