"""Rule fleet: the page that compares the networks on the devices, and its tables."""

from pathlib import Path

from stage import stage

from autotailor import fleet

with stage(snakemake) as this:
    runs = fleet.Fleet.open([Path(path).parent for path in snakemake.input.configurations])
    fleet.write_page(runs, Path(snakemake.output.page))
