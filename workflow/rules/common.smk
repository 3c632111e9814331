"""Configuration and helpers; the rules are in the other files of this folder."""

import functools
import os
import re
import sys
from pathlib import Path

from autotailor import artifacts, contents, data, run_lock, tracking
from autotailor.commands import feasibility
from autotailor import config as configuration
from autotailor.ir.errors import AutoTailorError
from autotailor.sections import flatten

# Threads that wait for each other sleep: spinning, they hinder whatever else runs on the cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

WORKFLOW = Path(os.path.abspath(str(workflow.current_basedir))).parent
ROOT = WORKFLOW.parent
TRACKING = Path("results/.tracking")
PLANNED = Path(".snakemake/autotailor/contents")


def load_configuration():
    """The composed configuration as plain values; one message, before any rule, where it cannot be had."""
    try:
        schemas = WORKFLOW / "schemas"
        if "overrides" in config:
            config["overrides"] = configuration.split_overrides(config["overrides"])
        configuration.validate(dict(config), schemas / "config.schema.yaml", "--config")
        for key, value in {
            "model": "resnet_digits",
            "device": "host",
            "overrides": [],
            "keep": [],
        }.items():
            config.setdefault(key, value)
        composed = configuration.compose(
            ROOT / "conf", config["model"], config["device"], config["overrides"]
        )
        composed["profile"]["lut"] = config.get("lut", composed["profile"]["lut"])
        configuration.validate(composed, schemas / "conf.schema.yaml", "conf")
        if workflow.is_main_process:
            configuration.check(composed)
        return composed
    except AutoTailorError as error:
        sys.exit(f"autotailor: {error}")


# Snakemake locks after it has read this file: what a killed run has left locked is gone by then.
if workflow.is_main_process:
    RUN_LOCK, was_killed = run_lock.hold(Path(".snakemake"))
    if was_killed:
        logger.warning(
            "autotailor: an earlier run was killed; going on where it stopped"
        )

CONFIG = load_configuration()
MODEL, DEVICE = config["model"], config["device"]
BUDGETS = CONFIG["export"]["budgets"]
COUNT = BUDGETS if isinstance(BUDGETS, int) else len(BUDGETS)
EXPORTS = ["largest", *(f"budget_{number:02d}" for number in range(1, COUNT + 1))]
EXPORTED = {
    "subnet": "subnet.json",
    "onnx": "model.onnx",
    "torch": "model.pt",
    "verification": "verification.json",
}
# Exports hold ncnn's files wherever ncnn can run the network; where it measures, they must be there.
NCNN_FILES = (
    {"param": "model.ncnn.param", "bin": "model.ncnn.bin"}
    if CONFIG["device"]["runtime"].startswith("ncnn")
    else {}
)
TRAINED_HERE = CONFIG["model"]["weights"] == "pretrain"
RUN = tracking.RunKey(MODEL, DEVICE, artifacts.digest(CONFIG), flatten(CONFIG))

# Timing on this machine wants it alone; a remote device only wants itself alone.
MEASURING_THREADS = (
    (workflow.cores or os.cpu_count())
    if CONFIG["device"]["transport"] == "local"
    else 1
)
PRETRAINING_THREADS = (CONFIG["model"]["pretrain"] or CONFIG)["threads"]
SHARING_THREADS = CONFIG["threads"] * CONFIG["workers"]
workflow.global_resources[f"device_{DEVICE}"] = 1

# Read by the scripts, no reason to run a rule again.
config["tracking"] = {
    "folder": str(TRACKING),
    "run": {
        "model": RUN.model,
        "device": RUN.device,
        "config_hash": RUN.config_hash,
        "params": dict(RUN.params),
    },
    "root": str(ROOT),
}

config["profile"] = CONFIG["profile"]
LUT = CONFIG["profile"]["lut"]

SECTIONS = {
    **{name: CONFIG[name] for name in CONFIG if name != "model"},
    "network": {
        key: CONFIG["model"][key]
        for key in ("name", "source", "resolution", "num_classes", "batch_norm")
        if key in CONFIG["model"]
    },
    "weights": CONFIG["model"]["weights"],
    "pretrain": CONFIG["model"]["pretrain"],
    "space": CONFIG["model"]["space"],
    "calibration": CONFIG["finetune"]["calibration"],
    "runtime": {
        key: CONFIG["device"].get(key)
        for key in ("name", "transport", "runtime", "precision", "fusion", "options")
    },
    "profile": {"max_minutes": CONFIG["profile"]["max_minutes"]},
    "imported": artifacts.file_digest(Path(LUT).expanduser()) if LUT else None,
    "budgets": BUDGETS,
    "tolerance": CONFIG["export"]["tolerance"],
    "configuration": CONFIG,
}


# What sections name, and do not hold.
CONTENTS = {
    "data": lambda: data.fingerprint(CONFIG["data"]),
    "network": lambda: contents.network_content(SECTIONS["network"]["source"]),
    "weights": lambda: (
        None if TRAINED_HERE else contents.weights_content(SECTIONS["weights"])
    ),
    "device": lambda: contents.runtime_content(CONFIG["device"]),
    "tolerance": contents.exporter_content,
}


@functools.cache
def content(name):
    """What a section names, as it was when the run was planned: rules find it in a file, wherever they run."""
    path = PLANNED / f"{artifacts.digest([name, SECTIONS[name]])}.json"
    if not workflow.is_main_process and path.exists():
        return artifacts.read_json(path)["content"]
    try:
        found = CONTENTS[name]()
    except AutoTailorError as error:
        sys.exit(f"autotailor: {error}")
    artifacts.write_json(path, {"content": found})
    return found


def sections(*names):
    """The configuration sections that a rule depends on, with what they name, and no other."""

    def value(wildcards):
        found = {name: SECTIONS[name] for name in names if name != "kept"}
        found |= {
            f"{name}_content": content(name) for name in names if name in CONTENTS
        }
        return found | ({"kept": kept()} if "kept" in names else {})

    return value


def pretrained(wildcards):
    """The weights of the original network, where they are trained here."""
    return f"results/{wildcards.model}/pretrained.pt" if TRAINED_HERE else []


def training_metrics(wildcards):
    """What the trainings of the original network and of the SuperNet say about themselves."""
    names = ["pretrain", "finetune"] if TRAINED_HERE else ["finetune"]
    return [f"results/{wildcards.model}/{name}.json" for name in names]


def comparison(wildcards):
    """The comparison with uniform scaling, where `make compare` has been run."""
    path = f"results/{wildcards.model}/{wildcards.device}/compare.csv"
    return path if os.path.exists(path) else []


def look_at_pictures():
    """Ends the run before its first rule where pictures cannot be used; a dry run does not read them."""
    try:
        data.verify(CONFIG["data"])
    except AutoTailorError as error:
        sys.exit(f"autotailor: {error}")


def ask_device():
    """Ends the run before its first rule where the device cannot be used by the rules that measure on it.

    Before anything is trained, its runtime must also be able to write every operator of the space.
    """
    jobs = list(workflow.dag.needrun_jobs())
    if not any(f"device_{DEVICE}" in job.resources.keys() for job in jobs):
        return
    rules_to_run = {job.rule.name for job in jobs}
    try:
        configuration.check_device(CONFIG)
        if not LUT and rules_to_run & {"pretrain", "finetune"}:
            logger.info(f"Can {DEVICE} run every operator of {MODEL}? Compiling ...")
            compiled = Path(f"results/{MODEL}/compiled.pt")
            feasibility.check_operators(
                CONFIG, None if "compile" in rules_to_run else compiled
            )
    except AutoTailorError as error:
        sys.exit(f"autotailor: {error}")


def start_tracking():
    """Creates the store and the parent run before the first rule."""
    if not tracking.start(Path("mlflow.db"), TRACKING, RUN):
        logger.warning(
            f"MLflow does not record this run now, see {TRACKING / 'recorder.log'}; the next one will."
        )


def stop_tracking(status):
    """Closes the parent run."""
    tracking.stop(TRACKING, status)
