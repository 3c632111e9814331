"""The common part of all rules' scripts; the scripts themselves only call the package."""

import logging
import os
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from autotailor import artifacts, logs, tracking
from autotailor.code import changed_modules, rule_code, rule_modules
from autotailor.ir.errors import AutoTailorError
from autotailor.sections import flatten
from autotailor.work import Work

WATCH_SECONDS = 1.0
WORK = Path("results/.work").resolve()  # absolute, because converters run in other directories
KEPT = {".csv", ".json", ".html", ".svg"}  # artifacts that MLflow also keeps; weights stay in results


@dataclass(frozen=True)
class Stage:
    """One running rule.

    Attributes:
        params: the rule's configuration sections.
        work: directory of checkpoints and journals, for this configuration and these inputs only.
        run: the rule's child run in MLflow.
    """

    params: dict
    work: Path
    run: tracking.Child


def _watch(process: psutil.Process) -> None:
    """Ends this process and its children when the Snakemake that started this process has ended.

    Otherwise a rule would outlive a killed Snakemake and work beside its own second run.
    """
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        time.sleep(WATCH_SECONDS)
    for child in psutil.Process().children(recursive=True):
        child.kill()
    os._exit(1)


def _follow_snakemake() -> None:
    """Starts a thread that watches the nearest Snakemake among this process's ancestors."""
    for ancestor in psutil.Process().parents():
        if any("snakemake" in part for part in ancestor.cmdline()[:3]):
            threading.Thread(target=_watch, args=(ancestor,), daemon=True).start()
            return


def _child(snakemake):
    """The child run of the rule."""
    settings = snakemake.config["tracking"]
    tags = {
        "rule": snakemake.rule,
        **{f"wildcard.{key}": value for key, value in snakemake.wildcards.items()},
        "git_commit": tracking.git_commit(Path(settings["root"])),
        "config_hash": settings["run"]["config_hash"],
    }
    key = tracking.RunKey(**settings["run"])
    return tracking.child(Path(settings["folder"]), key, tags, flatten(snakemake.params.sections))


def _work(snakemake, provenance: artifacts.Provenance, *, is_training: bool) -> Work:
    """The rule's folder below ``results/.work``; see ``autotailor.work``."""
    root = Path(snakemake.config["tracking"]["root"])
    code = rule_modules(rule_code(root), root, snakemake.rule)
    key = [snakemake.rule, provenance.lineage] if is_training else provenance.key
    return Work.of(WORK, snakemake.rule, list(snakemake.wildcards), key, code, is_training=is_training)


@contextmanager
def stage(snakemake, *, computes=True, is_training=False):
    """Runs the block as a rule: with console, log, work directory, child run and provenance.

    PyTorch gets the number of threads in the rule's configuration, or one, because floating-point sums depend on it.

    Args:
        snakemake: Snakemake's object for the script.
        computes: whether the rule needs PyTorch; without PyTorch, seconds of importing are saved.
        is_training: whether an interrupted run also continues after its code changed; checkpoints tell what they
            belong to.
    """
    _follow_snakemake()
    logs.send_to(snakemake.log[0] if snakemake.log else None)
    params = snakemake.params.sections
    if computes:
        import torch

        torch.set_num_threads(params.get("threads", 1))
    record = Path(snakemake.output.provenance)
    outputs = [Path(path) for path in snakemake.output if Path(path) != record]
    for output in (*outputs, record):
        artifacts.sweep(output.parent, output.name)
    try:
        with _child(snakemake) as run:
            provenance = artifacts.Provenance(snakemake.rule, params, [Path(path) for path in snakemake.input])
            work = _work(snakemake, provenance, is_training=is_training)
            begun = work.begin()
            yield Stage(params, work.folder, run)
            resumed = changed_modules(begun, work.code)
            provenance.write(record, outputs, work.code, snakemake.config["kept"], resumed)
            work.finish()
            for path in outputs:
                if path.suffix in KEPT:
                    run.artifact(path)
    except AutoTailorError as error:
        logging.error("Error in rule %s: %s", snakemake.rule, error)
        sys.exit(1)
    except Exception:
        logging.exception("Error in rule %s", snakemake.rule)
        sys.exit(1)
