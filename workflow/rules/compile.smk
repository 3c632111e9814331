rule compile:
    input:
        pretrained=pretrained,
    output:
        onnx=RESULTS + "/{model}/model.onnx",
        space=RESULTS + "/{model}/space.json",
        supernet=RESULTS + "/{model}/compiled.pt",
        provenance=RESULTS + "/{model}/provenance/compile.json",
    log:
        LOGS + "/{model}/compile.log",
    benchmark:
        LOGS + "/{model}/compile.tsv"
    conda:
        "../envs/autotailor.yaml"
    params:
        sections=sections("network", "weights", "space"),
        code=code("compiler", "zoo"),
    message:
        "compile: {wildcards.model} into a SuperNet"
    script:
        "../scripts/compile.py"
