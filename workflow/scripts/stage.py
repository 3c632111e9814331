"""The common part of all rules' scripts; the scripts themselves only call the package."""

import logging
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from autotailor import artifacts, logs, progress, tracking
from autotailor.code import changed_modules, rule_code, rule_modules
from autotailor.compute import launch
from autotailor.data.trouble import reader_trouble
from autotailor.ir.errors import AutoTailorError
from autotailor.project.repeats import interrupt_once
from autotailor.sections import flatten, read_sections
from autotailor.stages import STAGES
from autotailor.work import Work

WATCH_SECONDS = 1.0
WORK = Path("results/.work").resolve()  # absolute, because converters run in other directories
KEPT = {".csv", ".json", ".html", ".svg"}  # artifacts that MLflow also keeps; of weights, it keeps the exported ones


@dataclass(frozen=True)
class Stage:
    """One running rule.

    Attributes:
        params: the rule's configuration sections.
        work: directory of checkpoints and journals, for this configuration and these inputs only.
        run: the rule's child run in MLflow.
        is_first: whether this process writes the rule's outputs; several may train together.
        told: what ``tell`` was given.
    """

    params: dict
    work: Path
    run: tracking.Child
    is_first: bool = True
    told: list[str] = field(default_factory=list)

    def tell(self, result: str) -> None:
        """Says what a person wants to know of the finished rule: in its log, on the console, for ``status``."""
        logging.info("%s", result)
        self.told.append(result)

    def record(self, metrics, epoch) -> None:
        """Keeps the metrics of an epoch in MLflow; the epoch is their step, and no metric."""
        self.run.metrics({key: value for key, value in metrics.items() if key != "epoch"}, epoch)

    def uses(self, splits, *names) -> None:
        """Notes in MLflow that the rule uses these splits of the data: ``train``, ``validation``, ``test``."""
        for name in names:
            role = "training" if name == "train" else name
            images = len(getattr(splits, name))
            used = (splits.name, role, splits.fingerprint, images, splits.num_classes, splits.image())
            self.run.dataset(tracking.Dataset(*used))


class _NoRun:
    """In the place of a child run for processes that train together with the first one."""

    def metrics(self, values, step=0):
        """Keeps nothing."""

    def dataset(self, used):
        """Keeps nothing."""


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
    """Starts a thread that watches the nearest Snakemake among this process's ancestors.

    A process that trains together with others watches the process that has started it.
    """
    for ancestor in psutil.Process().parents():
        if launch.is_worker() or any("snakemake" in part for part in ancestor.cmdline()[:3]):
            threading.Thread(target=_watch, args=(ancestor,), daemon=True).start()
            return


def _rule(snakemake) -> str:
    """The name of the rule, which is that of its script and its provenance for all kinds of pairs."""
    return Path(snakemake.output.provenance).stem


def _pair(snakemake) -> tuple[str, str]:
    """The model and the device of the job; the first ones that were asked for where the rule has no such wildcard."""
    first = {key: snakemake.config[key][0] for key in ("model", "device")}
    return tuple(snakemake.wildcards.get(key, name) for key, name in first.items())


def _child(snakemake):
    """The child run of the rule."""
    settings, pair = snakemake.config["tracking"], _pair(snakemake)
    composed = read_sections(Path(snakemake.config["configurations"]["/".join(pair)]))["configuration"]
    commit = tracking.git_commit(Path(settings["checkout"]))  # where autotailor is installed: of the project
    key = tracking.RunKey(*pair, artifacts.digest(composed), flatten(composed), commit)
    others = {key: value for key, value in snakemake.wildcards.items() if key not in ("model", "device")}
    tags = {
        "rule": _rule(snakemake),
        **{f"wildcard.{key}": value for key, value in others.items()},
        "git_commit": commit,
        "config_hash": key.config_hash,
    }
    return tracking.child(Path(settings["folder"]), key, tags, flatten(snakemake.params.sections))


def _work(snakemake, provenance: artifacts.Provenance, *, is_training: bool) -> Work:
    """The rule's folder below ``results/.work``; see ``autotailor.work``."""
    root = Path(snakemake.config["tracking"]["root"])
    code = rule_modules(rule_code(root), root, provenance.rule)
    key = [provenance.rule, _meant(provenance, snakemake.params.sections)] if is_training else provenance.key
    return Work.of(WORK, provenance.rule, list(snakemake.wildcards), key, code, is_training=is_training)


def _meant(provenance: artifacts.Provenance, sections: dict) -> dict[str, str]:
    """The lineage without parameters that do not influence what is trained, so that a training survives their change.

    The section of a training is one that says how often checkpoints are written.
    """
    from autotailor import data
    from autotailor.finetuning.training.config import WITHOUT_EFFECT

    found = {}
    for name, section in sections.items():
        if name == "data":
            found[name] = artifacts.digest(data.meant(section))
        elif isinstance(section, dict) and "checkpoint_seconds" in section:
            left = {key: value for key, value in section.items() if key not in WITHOUT_EFFECT}
            found[name] = artifacts.digest(left)
    return provenance.lineage | found


def _files(outputs: list[Path]) -> list[Path]:
    """The files that the rule has written; of an output that is a folder, those in it."""
    found = []
    for path in outputs:
        found += sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    return found


def _train_together(snakemake):
    """Runs the rule's script in several processes, where its section asks for them, and ends this process.

    The workers write the log; the messages of this process, which starts the workers, are appended to the log.
    """
    asked = launch.Processes.of(snakemake.params.sections.get(snakemake.rule))
    if asked.count == 1 or launch.is_worker():
        return
    logs.send_to(None)
    try:
        launch.launch(asked, snakemake.rule)
    except AutoTailorError as error:
        logs.send_to(snakemake.log[0] if snakemake.log else None, mode="a")
        logging.error("Error in rule %s: %s", snakemake.rule, error)
        sys.exit(launch.status_of(error))
    sys.exit(0)


@contextmanager
def _helper(snakemake):
    """The stage of a process that trains together with the first one, and writes nothing.

    The work folder is read after the training has connected the processes, and thus after the first one has begun it.
    """
    logs.silence()
    params = snakemake.params.sections
    try:
        provenance = artifacts.Provenance(_rule(snakemake), params, [Path(path) for path in snakemake.input])
        work = _work(snakemake, provenance, is_training=True)
        yield Stage(params, work.folder, _NoRun(), is_first=False)
    except Exception as error:
        trouble = reader_trouble(error)
        launch.tell(RuntimeError(trouble) if trouble else error)
        sys.exit(launch.status_of(error))


@contextmanager
def stage(snakemake):
    """Runs the block as a rule: with console, log, work directory, child run and provenance.

    PyTorch gets the number of threads in the rule's configuration, or one, because floating-point sums depend on it.

    Where the section of a rule that trains asks for several processes, the script runs once in each of them. Only the
    first one writes: messages, metrics, checkpoints and, where ``Stage.is_first`` says so, outputs.

    Args:
        snakemake: Snakemake's object for the script.
    """
    _follow_snakemake()
    interrupt_once()
    params, described = snakemake.params.sections, STAGES[_rule(snakemake)]
    if described.trains:
        _train_together(snakemake)
    if described.computes:
        import torch

        torch.set_num_threads(params.get("threads", 1))
    if launch.rank():
        with _helper(snakemake) as helper:
            yield helper
        return
    logs.send_to(snakemake.log[0] if snakemake.log else None)
    recorder = progress.begin(snakemake.log[0], snakemake.rule) if snakemake.log else None
    record = Path(snakemake.output.provenance)
    outputs = [Path(path) for path in snakemake.output if Path(path) != record]
    for output in (*outputs, record):
        artifacts.sweep(output.parent, output.name)
    with _ended(snakemake, recorder):
        with _child(snakemake) as run, tracking.watched(run):
            mixes = described.of == "fleet"  # inputs come from several configurations, whose sections may differ
            inputs = [] if mixes else [Path(path) for path in snakemake.input]
            provenance = artifacts.Provenance(_rule(snakemake), params, inputs)
            work = _work(snakemake, provenance, is_training=described.trains)
            begun = work.begin()
            this = Stage(params, work.folder, run)
            yield this
            resumed = changed_modules(begun, work.code)
            kept = snakemake.config["kept"].get("/".join(_pair(snakemake)), {})
            files = _files(outputs)
            provenance.write(record, files, work.code, kept, resumed)
            work.finish()
            for path in files:
                if path.suffix in KEPT:
                    run.artifact(path)
        if recorder:
            recorder.finish("; ".join(this.told))


@contextmanager
def _ended(snakemake, recorder):
    """Says how the block has failed, in the log and in the record, and ends the process with that."""
    try:
        yield
    except KeyboardInterrupt:
        logging.info("%s ends because of SIGINT; the same command goes on with what the rule has kept", snakemake.rule)
        if recorder:
            recorder.stop()
        sys.exit(128 + signal.SIGINT)
    except SystemExit as ended:
        if recorder and ended.code == 128 + signal.SIGTERM:
            recorder.stop()
        raise
    except AutoTailorError as error:
        logging.error("Error in rule %s: %s", snakemake.rule, error)
        launch.tell(error)
        sys.exit(launch.status_of(error))
    except Exception as error:
        trouble = artifacts.disk_trouble(error) or reader_trouble(error)
        if trouble:
            logging.error("Error in rule %s: %s", snakemake.rule, trouble)
        else:
            logging.exception("Error in rule %s", snakemake.rule)
        launch.tell(error)
        sys.exit(1)
    finally:
        if recorder:
            recorder.fail()
