for kind in KINDS:

    rule:
        name:
            kind.named("report")
        input:
            **kind.measured(
                operators="results/{model}/{device}/operators.csv",
                lut="results/{model}/{device}/lut.csv",
                validation="results/{model}/{device}/validation.csv",
                contributors="results/{model}/{device}/contributors.csv",
                confirmed="results/{model}/{device}/confirmed.csv",
            ),
            space="results/{model}/space.json",
            sensitivity="results/{model}/sensitivity.csv",
            baseline="results/{model}/sensitivity.json",
            accuracy_validation="results/{model}/accuracy_validation.csv",
            pareto="results/{model}/{device}/pareto.csv",
            yardstick="results/{model}/{device}/search.json",
            summary="results/{model}/{device}/summary.csv",
            chosen="results/{model}/{device}/polish.json",
            candidates="results/{model}/{device}/candidates.csv",
            polish="results/{model}/{device}/polish.csv",
            compare=scaled_uniformly,
            exports=expand(
                "results/{model}/{device}/exports/{name}/{file}",
                name=kind.exports,
                file=["subnet.json", "verification.json"],
                allow_missing=True,
            ),
        output:
            **{
                f"{name}_card": f"results/{{model}}/{{device}}/exports/{name}/README.md"
                for name in kind.exports
            },
            **kind.measured(
                latency=report(
                    "results/{model}/{device}/figures/latency.svg",
                    caption="../report/latency.rst",
                    category="Latency",
                ),
                contributors=report(
                    "results/{model}/{device}/figures/contributors.svg",
                    caption="../report/contributors.rst",
                    category="Latency",
                ),
            ),
            report=report(
                "results/{model}/{device}/report.html",
                caption="../report/report.rst",
                category="Report",
            ),
            front=report(
                "results/{model}/{device}/figures/front.svg",
                caption="../report/front.rst",
                category="Front",
            ),
            accuracy=report(
                "results/{model}/{device}/figures/accuracy.svg",
                caption="../report/accuracy.rst",
                category=score_title,
            ),
            sensitivity=report(
                "results/{model}/{device}/figures/sensitivity.svg",
                caption="../report/sensitivity.rst",
                category=score_title,
            ),
            configuration="results/{model}/{device}/configuration.json",
            timings="results/{model}/{device}/timings.csv",
            provenance="results/{model}/{device}/provenance/report.json",
        log:
            "logs/{model}/{device}/report.log",
        wildcard_constraints:
            **kind.pairs,
        conda:
            "../envs/autotailor.yaml"
        threads: cores("report")
        resources:
            **on_cluster("report"),
        params:
            sections=sections("configuration", "kept"),
            code=code("report"),
        message:
            "report: writes report.html and the cards of the exports"
        script:
            "../scripts/report.py"
