"""The rules, one for each stage of src/autotailor/stages.py, and for each kind of pairs whose files differ."""

RULES = list(described())
SCRIPTS = {rule: f"../scripts/{stage.name}.py" for rule, stage, kind in RULES}


# A script is looked up when the rule runs, where Snakemake's name for the rule is `rule` as well.
for rule, stage, kind in RULES:

    rule:
        name:
            rule
        input:
            **inputs_of(stage, kind),
        output:
            **outputs_of(stage, kind),
        log:
            log_of(stage, "log"),
        benchmark:
            log_of(stage, "tsv")
        wildcard_constraints:
            **(kind.pairs if stage.is_kind else {}),
            **({"device": either(POOLED)} if stage.only == "ncnn" else {}),
        conda:
            "../envs/autotailor.yaml"
        threads: cores(stage.name, THREADS[stage.threads])
        resources:
            **(ON_DEVICE if stage.measures else {}),
            **on_cluster(stage.name),
        params:
            sections=sections(*stage.sections),
            code=code(stage.name),
        message:
            said(stage, kind)
        script:
            SCRIPTS[rule]

    if not stage.is_timed:
        workflow.get_rule(rule)._benchmark = None


rule pool:
    input:
        pools,
