"""The code of each rule, and the rules that are kept although their code has changed (--config keep=...)."""

import json

from autotailor.code import changed_modules, modules_digest, rule_code, rule_modules
from autotailor.stages import STAGES, WRITER, Shown, When, kept_with

CODE = rule_code(ROOT)
RUN_AS = STATE / "run_as.json"
KEEP = [config["keep"]] if isinstance(config["keep"], str) else config["keep"]

# Rules that take long, each with the rules before it: if one of those runs again, the rule runs again, too.
EXPENSIVE = {name: kept_with(name) for name, stage in STAGES.items() if stage.is_long}
KEPT = {rule for kept in KEEP for rule in (kept, *EXPENSIVE[kept])}


def provenance(rule, pair):
    """Path of a rule's provenance record; None where the rule has not run."""
    folders = [f"results/{pair.model}/{pair.device}", f"results/{pair.model}"]
    paths = [Path(folder) / "provenance" / f"{rule}.json" for folder in folders]
    return next((path for path in paths if path.exists()), None)


def changes(rule, pair):
    """Modules of a rule that have changed since its last run; empty where the rule has not run."""
    recorded = artifacts.recorded_code(provenance(rule, pair))
    return changed_modules(recorded, rule_modules(CODE, ROOT, rule)) if recorded else []


def code(rule):
    """Hash of the code that a rule can run, because Snakemake itself only checks the date of a script."""

    def value(wildcards):
        pair = pair_of(wildcards)
        recorded = (
            artifacts.recorded_code(provenance(rule, pair)) if rule in KEPT else {}
        )
        digest = modules_digest(recorded or rule_modules(CODE, ROOT, rule))
        return run_as().get(str(Path(*wildcards, f"{rule}:{digest}")), digest)

    return value


def run_as():
    """Maps the hash of the code that a kept rule really ran to the hash that Snakemake has recorded."""
    return json.loads(RUN_AS.read_text()) if RUN_AS.exists() else {}


def note_kept():
    """Notes the current code of kept rules that run nevertheless, for another reason than their code."""
    for job in workflow.dag.needrun_jobs():
        name = job.rule.name
        now = modules_digest(rule_modules(CODE, ROOT, name)) if name in KEPT else None
        if now and job.params.code != now:
            key = str(Path(*job.wildcards, f"{name}:{now}"))
            with artifacts.atomic(RUN_AS) as path:
                path.write_text(json.dumps({**run_as(), key: job.params.code}))


@functools.cache
def kept(pair):
    """The rules whose artifacts are used although their code has changed, with the changed modules."""
    return {name: found for name in sorted(KEPT) if (found := changes(name, pair))}


def changed_before(name, pair):
    """Changed modules of a rule that has run, and of the rules before it."""
    rules = (*EXPENSIVE[name], name) if provenance(name, pair) else ()
    return {module for rule in rules for module in changes(rule, pair)}


def tell_changed_code():
    """Warns of changed code of rules that take long, and names the option that keeps their artifacts."""
    changed = {}
    for name in (name for name in EXPENSIVE if name not in KEPT):
        found = sorted(
            set().union(*(changed_before(name, pair) for pair in MATRIX.pairs))
        )
        if found:
            more = f" and {len(found) - 5} more" if len(found) > 5 else ""
            changed[name] = ", ".join(found[:5]) + more
    if changed:
        demands = {name: STAGES[name].on_demand for name in changed}
        notes = {name: f" ({when})" if when else "" for name, when in demands.items()}
        lines = "".join(
            f"\n  {name}{notes[name]}: {what}" for name, what in changed.items()
        )
        logger.warning(
            "autotailor: these rules run again, because their code, or the code of rules before them, has "
            f"changed:{lines}\nTo keep a rule's artifacts, add keep={list(changed)[-1]} to model and device; a list keeps several"
        )


if workflow.is_main_process:
    tell_changed_code()
