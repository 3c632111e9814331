"""Rule fleet: the page that compares the networks on the devices, and its tables."""

from pathlib import Path

from stage import stage

from autotailor.fleet.page.write import write_page
from autotailor.fleet.runs import Fleet

with stage(snakemake, mixes=True) as this:
    fleet = Fleet.open([Path(path).parent for path in snakemake.input.configurations])
    write_page(fleet, Path(snakemake.output.page))
