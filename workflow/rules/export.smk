rule export:
    input:
        supernet=RESULTS + "/{model}/supernet.pt",
        front=RESULTS + "/{model}/{device}/front.json",
    output:
        subnet=RESULTS + "/{model}/{device}/exports/{name}/subnet.json",
        onnx=RESULTS + "/{model}/{device}/exports/{name}/model.onnx",
        param=RESULTS + "/{model}/{device}/exports/{name}/model.ncnn.param",
        bin=RESULTS + "/{model}/{device}/exports/{name}/model.ncnn.bin",
        torch=RESULTS + "/{model}/{device}/exports/{name}/model.pt",
        verification=RESULTS + "/{model}/{device}/exports/{name}/verification.json",
        provenance=RESULTS + "/{model}/{device}/provenance/export_{name}.json",
    log:
        LOGS + "/{model}/{device}/export_{name}.log",
    benchmark:
        LOGS + "/{model}/{device}/export_{name}.tsv"
    conda:
        "../envs/autotailor.yaml"
    params:
        sections=sections("data", "calibration", "tolerance", "runtime"),
        code=code("compiler", "export", "finetuning", "data", "profiling"),
    message:
        "export: SubNet {wildcards.name} as ONNX, ncnn and PyTorch"
    script:
        "../scripts/export.py"
