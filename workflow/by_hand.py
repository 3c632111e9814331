"""One rule by hand: the ``snakemake`` object of its script, with real inputs, parameters and outputs.

    python -i workflow/by_hand.py search --config model=resnet_digits device=host         # to look at `snakemake`
    python -i workflow/by_hand.py search --config model=resnet_digits device=host --run   # runs the script, too
    python -m pdb workflow/by_hand.py search --run                                        # stops in it: b FILE:LINE

No other rule runs, and nothing is locked. The script writes the files of its rule, in the current directory below
``results/``; ``snakemake --forcerun RULE`` makes them anew.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from arguments import parse_config
from snakemake.dag import DAG
from snakemake.iocontainers import Log, Snakemake
from snakemake.jobs import Job
from snakemake.logging import LoggerManager, logger
from snakemake.settings.types import (
    ConfigSettings,
    DAGSettings,
    OutputSettings,
    ResourceSettings,
    StorageSettings,
    WorkflowSettings,
)
from snakemake.workflow import Workflow
from snakemake_interface_executor_plugins.settings import ExecMode

from autotailor.stages import STAGES

WORKFLOW = Path(__file__).resolve().parent
SCRIPTS = WORKFLOW / "scripts"


def snakemake_of(rule: str, config: Sequence[str] = ()) -> Snakemake:
    """What the script of a rule is given in the current directory, but for the log: messages go to the console alone.

    Of several models or devices, the first ones are taken.

    Args:
        rule: name of the rule.
        config: what would stand behind ``--config``.
    """
    workflow = Workflow(
        config_settings=ConfigSettings(config=parse_config(config)),
        resource_settings=ResourceSettings(cores=os.cpu_count()),
        workflow_settings=WorkflowSettings(exec_mode=ExecMode.SUBPROCESS),  # as a rule's own process reads the workflow
        storage_settings=StorageSettings(),
        dag_settings=DAGSettings(),
        logger_manager=LoggerManager(logger, OutputSettings()),
        storage_provider_settings={},
    )
    workflow.include(str(WORKFLOW / "Snakefile"))
    known = dict(zip(("model", "device"), workflow.globals["MATRIX"].pair(), strict=True))
    found = workflow.get_rule(rule)
    job = Job(found, DAG(workflow, rules=[found]), {name: known[name] for name in found.wildcard_names})
    return Snakemake(
        input_=job.input,
        output=job.output,
        params=job.params,
        wildcards=job.wildcards,
        threads=job.threads,
        resources=job.resources,
        log=Log(),
        config=workflow.config,
        rulename=rule,
        bench_iteration=None,
        scriptdir=str(SCRIPTS),
    )


def tell(snakemake: Snakemake) -> None:
    """Prints the files of a rule, and which of its inputs are missing."""
    print(f"snakemake: rule {snakemake.rule}, script {SCRIPTS / snakemake.rule}.py")
    for title in ("input", "output"):
        for name, paths in getattr(snakemake, title).items():
            for path in [paths] if isinstance(paths, str) else paths:
                is_missing = title == "input" and not Path(path).exists()
                print(f"  {title}.{name}: {path}{' (missing)' if is_missing else ''}")
    print(f"  params.sections: {', '.join(snakemake.params.sections)}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rule", choices=sorted(STAGES))
    parser.add_argument("--config", nargs="+", default=[], metavar="KEY=VALUE", help="as Snakemake takes it")
    parser.add_argument("--run", action="store_true", help="run the rule's script; its names stay for python -i")
    arguments = parser.parse_args()
    snakemake = snakemake_of(arguments.rule, arguments.config)
    tell(snakemake)
    sys.path.append(str(SCRIPTS))  # last, as Snakemake does it: some scripts have the names of modules of Python's own
    if arguments.run:
        for path in snakemake.output:
            Path(path).parent.mkdir(parents=True, exist_ok=True)  # as Snakemake does before it runs a rule
        script = SCRIPTS / f"{arguments.rule}.py"
        exec(compile(script.read_text(encoding="utf-8"), script, "exec"))
