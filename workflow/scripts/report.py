"""Rule report: report.html, a file that needs no other files, its figures, and the cards of the exports."""

import json
from pathlib import Path

import pandas as pd
from stage import stage

from autotailor import artifacts, reporting, tracking

with stage(snakemake) as this:
    folder = Path(snakemake.log[0]).parent
    logs = sorted([*folder.parent.glob("*.tsv"), *folder.glob("*.tsv")], key=lambda log: log.stat().st_mtime)
    with artifacts.atomic(snakemake.output.configuration) as path:
        path.write_text(json.dumps(tracking.public(this.params["configuration"]), indent=2) + "\n", encoding="utf-8")
    with artifacts.atomic(snakemake.output.timings) as path:
        rows = [(log.stem, pd.read_csv(log, sep="\t")["s"].iloc[0]) for log in logs]
        pd.DataFrame(rows, columns=["stage", "seconds"]).to_csv(path, index=False)
    tables = {name: Path(path) for name, path in snakemake.input.items() if path and name != "exports"}
    inputs = reporting.ReportInputs(
        model=snakemake.wildcards.model,
        device=snakemake.wildcards.device,
        timings=Path(snakemake.output.timings),
        configuration=Path(snakemake.output.configuration),
        **tables,
    )
    reporting.build_report(inputs, Path(snakemake.output.report))
    for name in set(reporting.FIGURES) & set(snakemake.output.keys()):
        reporting.write_figure(name, inputs, Path(snakemake.output[name]))
    exits = artifacts.read_json(tables["exits"]) if "exits" in tables else None
    rows = {row["name"]: row for row in pd.read_csv(snakemake.input.summary).to_dict("records")}
    for name, card in snakemake.output.items():
        if name.endswith("_card"):
            export = Path(card).parent
            pair = (snakemake.wildcards.model, snakemake.wildcards.device)
            reporting.write_card(export, export.name, this.params["configuration"], rows, pair=pair, exits=exits)
    this.tell(snakemake.output.report)
