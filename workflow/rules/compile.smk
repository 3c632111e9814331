rule compile:
    input:
        pretrained=pretrained,
    output:
        onnx="results/{model}/model.onnx",
        space="results/{model}/space.json",
        supernet="results/{model}/compiled.pt",
        provenance="results/{model}/provenance/compile.json",
    log:
        "logs/{model}/compile.log",
    benchmark:
        "logs/{model}/compile.tsv"
    conda:
        "../envs/autotailor.yaml"
    threads: cores("compile")
    resources:
        **on_cluster("compile"),
    params:
        sections=sections("network", "weights", "space"),
        code=code("compile"),
    message:
        "compile: {wildcards.model} into a SuperNet"
    script:
        "../scripts/compile.py"
