rule export:
    input:
        supernet="results/{model}/supernet.pt",
        front="results/{model}/{device}/front.json",
    output:
        subnet="results/{model}/{device}/exports/{name}/subnet.json",
        onnx="results/{model}/{device}/exports/{name}/model.onnx",
        param="results/{model}/{device}/exports/{name}/model.ncnn.param",
        bin="results/{model}/{device}/exports/{name}/model.ncnn.bin",
        torch="results/{model}/{device}/exports/{name}/model.pt",
        verification="results/{model}/{device}/exports/{name}/verification.json",
        provenance="results/{model}/{device}/provenance/export_{name}.json",
    log:
        "logs/{model}/{device}/export_{name}.log",
    benchmark:
        "logs/{model}/{device}/export_{name}.tsv"
    conda:
        "../envs/autotailor.yaml"
    params:
        sections=sections("data", "calibration", "tolerance", "runtime"),
        code=code("compiler", "export", "finetuning", "data", "profiling"),
    message:
        "export: SubNet {wildcards.name} as ONNX, ncnn and PyTorch"
    script:
        "../scripts/export.py"
