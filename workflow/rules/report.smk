rule report:
    input:
        space=RESULTS + "/{model}/space.json",
        sensitivity=RESULTS + "/{model}/sensitivity.csv",
        baseline=RESULTS + "/{model}/sensitivity.json",
        accuracy_validation=RESULTS + "/{model}/accuracy_validation.csv",
        operators=RESULTS + "/{model}/{device}/operators.csv",
        lut=RESULTS + "/{model}/{device}/lut.csv",
        validation=RESULTS + "/{model}/{device}/validation.csv",
        pareto=RESULTS + "/{model}/{device}/pareto.csv",
        yardstick=RESULTS + "/{model}/{device}/search.json",
        contributors=RESULTS + "/{model}/{device}/contributors.csv",
        summary=RESULTS + "/{model}/{device}/summary.csv",
        compare=comparison,
    output:
        report=report(
            RESULTS + "/{model}/{device}/report.html",
            caption="../report/report.rst",
            category="Report",
        ),
        front=report(
            RESULTS + "/{model}/{device}/figures/front.svg",
            caption="../report/front.rst",
            category="Front",
        ),
        latency=report(
            RESULTS + "/{model}/{device}/figures/latency.svg",
            caption="../report/latency.rst",
            category="Latency",
        ),
        accuracy=report(
            RESULTS + "/{model}/{device}/figures/accuracy.svg",
            caption="../report/accuracy.rst",
            category="Accuracy",
        ),
        sensitivity=report(
            RESULTS + "/{model}/{device}/figures/sensitivity.svg",
            caption="../report/sensitivity.rst",
            category="Accuracy",
        ),
        contributors=report(
            RESULTS + "/{model}/{device}/figures/contributors.svg",
            caption="../report/contributors.rst",
            category="Latency",
        ),
        configuration=RESULTS + "/{model}/{device}/configuration.json",
        timings=RESULTS + "/{model}/{device}/timings.csv",
        provenance=RESULTS + "/{model}/{device}/provenance/report.json",
    log:
        LOGS + "/{model}/{device}/report.log",
    conda:
        "../envs/autotailor.yaml"
    params:
        sections=sections("configuration"),
        code=code("reporting"),
    message:
        "report: writes report.html"
    script:
        "../scripts/report.py"
