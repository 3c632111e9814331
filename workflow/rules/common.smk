"""Configuration and helpers of the rules in the other files of this folder."""

import functools
import os
import re
import sys
from pathlib import Path

from autotailor import artifacts, contents, data, run_lock, search, tracking
from autotailor.commands import feasibility
from autotailor import config as configuration
from autotailor.ir.errors import AutoTailorError
from autotailor.project import places
from autotailor.sections import flatten

# Waiting threads sleep, because threads that spin slow down other programs on the cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

WORKFLOW = Path(os.path.abspath(str(workflow.current_basedir))).parent
ROOT = WORKFLOW.parent
TRACKING = Path("results/.tracking")
PLANNED = Path(".snakemake/autotailor/contents")


def load_configuration():
    """The composed configuration as plain values; an invalid one ends the run with a message before any rule."""
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
            "cluster": None,
        }.items():
            config.setdefault(key, value)
        composed = configuration.compose(
            configuration.conf_folder(),
            config["model"],
            config["device"],
            config["overrides"],
            config["cluster"],
        )
        composed["profile"]["lut"] = config.get("lut", composed["profile"]["lut"])
        configuration.validate(composed, schemas / "conf.schema.yaml", "conf")
        if workflow.is_main_process:
            configuration.check(composed)
        return composed
    except AutoTailorError as error:
        sys.exit(f"autotailor: {error}")


# Snakemake locks after it has read this file, so that the locks of a killed run are removed before.
if workflow.is_main_process:
    RUN_LOCK, was_killed = run_lock.hold(Path(".snakemake"))
    if was_killed:
        logger.warning(
            "autotailor: an earlier run was killed; this run continues its work"
        )

CONFIG = load_configuration()
# Where jobs are computed, and with what, changes no result, and is no part of what provenance and MLflow record.
CLUSTER_SECTION = CONFIG.pop("cluster", {"name": "local"})
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
# Exports hold ncnn's files if ncnn can run the network. Where ncnn measures, these files are required outputs.
NCNN_FILES = (
    {"param": "model.ncnn.param", "bin": "model.ncnn.bin"}
    if CONFIG["device"].get("runtime", "").startswith("ncnn")
    else {}
)
SCORE = data.score(CONFIG["data"])
COST = search.cost_of_device(CONFIG["device"])
TRAINED_HERE = CONFIG["model"]["weights"] == "pretrain"
RUN = tracking.RunKey(MODEL, DEVICE, artifacts.digest(CONFIG), flatten(CONFIG))


def measured(**items):
    """Inputs, outputs and resources of a rule that need a device; none where budgets limit what the graph says."""
    return items if COST.is_measured else {}


# What competes for each budget: measured first where there is a device.
CANDIDATES = "confirmed" if COST.is_measured else "candidates"


def together(section):
    """The threads of all processes of a machine that train together."""
    return section["threads"] * section.get("processes", 1)


PRETRAINING_THREADS = together(
    CONFIG["model"]["pretrain"] or {"threads": CONFIG["threads"]}
)
SHARING_THREADS = CONFIG["threads"] * CONFIG["workers"]
FINETUNING_THREADS = max(SHARING_THREADS, together(CONFIG["finetune"]))
workflow.global_resources[f"device_{DEVICE}"] = 1

# The scripts read these settings; a change of them does not run a rule again.
config["tracking"] = {
    "folder": str(TRACKING),
    "run": {
        "model": RUN.model,
        "device": RUN.device,
        "config_hash": RUN.config_hash,
        "params": dict(RUN.params),
    },
    "root": str(ROOT),
    "checkout": str(Path.cwd() if places.IS_INSTALLED else ROOT),
}

config["score"] = {"name": SCORE.name, "title": SCORE.title, "best": SCORE.best}
config["cost"] = {"title": COST.title, "is_measured": COST.is_measured}
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
    "runtime": (
        {
            key: CONFIG["device"].get(key)
            for key in (
                "name",
                "transport",
                "runtime",
                "precision",
                "fusion",
                "options",
            )
        }
        if COST.is_measured
        else CONFIG["device"]
    ),
    "profile": {"max_minutes": CONFIG["profile"]["max_minutes"]},
    "imported": artifacts.file_digest(Path(LUT).expanduser()) if LUT else None,
    "budgets": BUDGETS,
    "tolerance": CONFIG["export"]["tolerance"],
    "configuration": CONFIG,
}


# Digests of the data, files and libraries that sections name but do not contain.
CONTENTS = {
    "data": lambda: data.fingerprint(CONFIG["data"]),
    "finetune": lambda: contents.training_content(CONFIG["finetune"]),
    "network": lambda: contents.network_content(SECTIONS["network"]["source"]),
    "weights": lambda: (
        None if TRAINED_HERE else contents.weights_content(SECTIONS["weights"])
    ),
    "device": lambda: (
        contents.runtime_content(CONFIG["device"]) if COST.is_measured else None
    ),
    "tolerance": contents.exporter_content,
}


@functools.cache
def content(name):
    """Digest of what a section names, computed when the run is planned; rules read the digest from a file."""
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
    """The configuration sections that a rule depends on, with the digests of what the sections name."""

    def value(wildcards):
        found = {name: SECTIONS[name] for name in names if name != "kept"}
        found |= {
            f"{name}_content": content(name) for name in names if name in CONTENTS
        }
        return found | ({"kept": kept()} if "kept" in names else {})

    return value


def pretrained(wildcards):
    """The file of the original network's weights if the workflow trains them, else no file."""
    return f"results/{wildcards.model}/pretrained.pt" if TRAINED_HERE else []


def teacher(wildcards):
    """The file of the original network where its answers stand for labels that the pictures lack, else no file."""
    return (
        []
        if data.has_labels(CONFIG["data"])
        else f"results/{wildcards.model}/compiled.pt"
    )


def training_metrics(wildcards):
    """The files that say how many images pretraining, finetuning and polishing have seen."""
    names = ["pretrain", "finetune"] if TRAINED_HERE else ["finetune"]
    polished = f"results/{wildcards.model}/{wildcards.device}/polish.json"
    return [f"results/{wildcards.model}/{name}.json" for name in names] + [polished]


def comparison(wildcards):
    """The file of the comparison with uniform scaling if `make compare` has been run, else no file."""
    path = f"results/{wildcards.model}/{wildcards.device}/compare.csv"
    return path if os.path.exists(path) else []


def look_at_pictures():
    """Ends the run before its first rule if pictures cannot be used; a dry run does not read the pictures."""
    try:
        data.verify(CONFIG["data"])
    except AutoTailorError as error:
        sys.exit(f"autotailor: {error}")


def ask_accelerators():
    """Ends the run before its first rule if this machine computes and lacks an accelerator of the configuration.

    Jobs of a cluster run on other machines; there each rule asks when it begins.
    """
    if workflow.local_exec:
        try:
            configuration.check_accelerators(CONFIG)
        except AutoTailorError as error:
            sys.exit(f"autotailor: {error}")


def ask_device():
    """Ends the run before its first rule if a rule measures on the device and the device cannot be used.

    If the run trains, the device's runtime must also be able to write every operator of the space.
    """
    jobs = list(workflow.dag.needrun_jobs())
    if not any(f"device_{DEVICE}" in job.resources.keys() for job in jobs):
        return
    rules_to_run = {job.rule.name for job in jobs}
    try:
        configuration.check_device(CONFIG)
        if not LUT and rules_to_run & {"pretrain", "finetune"}:
            logger.info(f"Checking that {DEVICE} can run every operator of {MODEL} ...")
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
            f"MLflow does not record this run yet; the next run will. See {TRACKING / 'recorder.log'}"
        )


def stop_tracking(status):
    """Closes the parent run."""
    tracking.stop(TRACKING, status)
