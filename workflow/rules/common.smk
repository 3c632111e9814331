"""What a run is about: its models, its devices, and the configuration of each pair."""

import functools
import os
import re
import sys
from pathlib import Path

from autotailor import artifacts, run_lock
from autotailor import config as configuration
from autotailor.ir.errors import AutoTailorError
from autotailor.project import scratch
from autotailor.progress.starting import note_start

# Waiting threads sleep, because threads that spin slow down other programs on the cores. Those of OpenBLAS spin in any
# case, and NumPy's matrices are small here: one thread is as fast alone, and six times as fast beside other programs.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

WORKFLOW = Path(os.path.abspath(str(workflow.current_basedir))).parent
ROOT = WORKFLOW.parent
sys.path.insert(0, str(WORKFLOW))
import quoting

quoting.quote_python()
if workflow.is_main_process:
    import console

    console.attach(workflow)
    if not workflow.output_settings.dryrun:
        note_start()
        import snakemake.persistence
        import turns

        turns.take_turns(snakemake.persistence.PersistenceBase)

STATE = Path(".snakemake/autotailor")
DEFAULTS = {
    "model": ["resnet_digits"],
    "device": ["host"],
    "overrides": [],
    "keep": [],
    "cluster": None,
    "recipe": None,
}
READ_AS = {
    "model": configuration.split_names,
    "device": configuration.split_names,
    "overrides": configuration.split_overrides,
}


def refuse(error):
    """Ends the run with a message, and not with a traceback, where a person can do something about an error."""
    is_said = isinstance(error, AutoTailorError)
    trouble = str(error) if is_said else artifacts.disk_trouble(error)
    if trouble:
        sys.exit(f"autotailor: {trouble}")
    raise error


def load_matrix():
    """The configurations of all pairs; an invalid one ends the run with a message before any rule."""
    try:
        for key, read in READ_AS.items():
            if key in config:
                config[key] = read(config[key])
        configuration.CommandLine.from_section(dict(config))
        for key, value in DEFAULTS.items():
            config.setdefault(key, value)
        recipe = [f"recipe={config['recipe']}"] if config["recipe"] else []
        matrix = configuration.Matrix(
            configuration.conf_folder(),
            config["model"],
            config["device"],
            [*recipe, *config["overrides"]],
            lut=config.get("lut"),
            cluster=config["cluster"],
            kept=STATE / "configurations",
            reads=not workflow.is_main_process,
        )
        if workflow.is_main_process:
            matrix.check()
        return matrix
    except (AutoTailorError, OSError) as error:
        refuse(error)


# Snakemake locks after it has read this file, so that the locks of a killed run are removed before.
if workflow.is_main_process:
    try:
        if workflow.local_exec:  # jobs of a cluster have their own machine's folder
            scratch.of_run(str(workflow.snakemake_tmp_dir))
    except OSError as error:
        refuse(error)
    RUN_LOCK, was_killed = run_lock.hold(Path(".snakemake"))
    if was_killed:
        logger.warning(
            "autotailor: an earlier run was killed; this run continues its work"
        )

MATRIX = load_matrix()
MODELS, DEVICES = MATRIX.models, MATRIX.devices


def pair_of(wildcards):
    """The pair of a job; the first device stands for all devices in the rules that work on a model alone."""
    return MATRIX.pair(wildcards.get("model"), wildcards.get("device"))


def settings(wildcards):
    """The configuration of a job's pair."""
    return MATRIX.configuration(pair_of(wildcards))


def of_model(model):
    """The configuration of a model, whose own sections are the same for all devices."""
    return MATRIX.configuration(MATRIX.pair(model))


def of_device(device):
    """The configuration of a device, whose own section is the same for all models."""
    return MATRIX.configuration(MATRIX.pair(device=device))
