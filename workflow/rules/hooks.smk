"""What the scripts are told beside their parameters, and what is asked and recorded before and after the rules."""

from autotailor import contents, tracking
from autotailor.commands import feasibility
from autotailor.project import places, termination
from autotailor.sections import flatten

TRACKING = Path("results/.tracking")
COMPILED = set()
"""Models whose networks were compiled for a check at the start of this run."""


def name_of(pair):
    """A pair as scripts find it in these settings."""
    return f"{pair.model}/{pair.device}"


# The scripts read these settings; a change of them does not run a rule again.
config["tracking"] = {
    "folder": str(TRACKING),
    "root": str(ROOT),
    "checkout": str(Path.cwd() if places.IS_INSTALLED else ROOT),
}
config["configurations"] = {
    name_of(pair): str(MATRIX.path(pair)) for pair in MATRIX.pairs
}
config["kept"] = {name_of(pair): kept(pair) for pair in MATRIX.pairs if KEPT}
config["profile"] = {device: of_device(device)["profile"] for device in DEVICES}
config["score"] = {
    model: {"name": score.name, "title": score.title, "best": score.best}
    for model, score in SCORES.items()
}
config["cost"] = {
    device: {"title": cost.title, "is_measured": cost.is_measured}
    for device, cost in COSTS.items()
}


def refusing(check):
    """A check that ends the run with a message before its first rule, and not with a traceback."""

    @functools.wraps(check)
    def checked():
        try:
            check()
        except (AutoTailorError, OSError) as error:
            refuse(error)

    return checked


@refusing
def look_at_pictures():
    """Refuses pictures that cannot be used; a dry run does not read the pictures."""
    for model in MODELS:
        data.verify(of_model(model)["data"])


@refusing
def ask_accelerators():
    """Refuses a machine that computes and lacks an accelerator, or a compiler, that the configuration wants.

    Jobs of a cluster run on other machines; there each rule asks when it begins.
    """
    if workflow.local_exec:
        for model in MODELS:
            configuration.check_accelerators(of_model(model))
            configuration.check_compilers(of_model(model))


@refusing
def ask_devices():
    """Refuses a device on which a rule measures and which cannot be used.

    If the run trains, the device's runtime must also be able to write every operator of the space.
    """
    for pairs in measured_pairs():
        configuration.check_device(*map(MATRIX.configuration, pairs))
        for pair in pairs:
            check_operators(pair, list(workflow.dag.needrun_jobs()))


def measured_pairs():
    """The pairs of each device on which a rule of this run measures, also after a dry run."""
    jobs = list(workflow.dag.needrun_jobs(exclude_finished=False))
    found = [
        {pair_of(job.wildcards) for job in jobs if measures_on(job, device)}
        for device in MEASURED
    ]
    return [sorted(pairs) for pairs in found if pairs]


@refusing
def look_at_spaces():
    """Refuses a network that is to be trained here, or gets exits, and cannot be compiled into its space afterwards.

    A network that was compiled to ask about a device (``ask_devices``) is not compiled again.
    """
    jobs = list(workflow.dag.needrun_jobs())
    asked = ("pretrain", "exits")
    found = {job.wildcards.model for job in jobs if job.rule.name in asked}
    for model in sorted(found - COMPILED):
        logger.info(f"Checking that {model} has its space ...")
        feasibility.check_space(of_model(model), compiled_of(model, jobs))


def rules_of(model, jobs):
    """The rules that run for a model."""
    return {job.rule.name for job in jobs if job.wildcards_dict.get("model") == model}


def compiled_of(model, jobs):
    """The compiled SuperNet of a model; None where this run trains or compiles the model."""
    is_made = rules_of(model, jobs) & {"pretrain", "compile"}
    return None if is_made else Path(f"results/{model}/compiled.pt")


@refusing
def fetch_teachers():
    """Refuses a network of timm that is to teach in this run and whose weights cannot be fetched."""
    jobs = list(workflow.dag.needrun_jobs())
    for model in MODELS:
        configuration.fetch_teachers(of_model(model), rules_of(model, jobs))


def measures_on(job, device):
    """Whether a job measures on a device."""
    is_of_device = job.wildcards_dict.get("device") == device
    return is_of_device and f"device_{BOARDS[device]}" in job.resources.keys()


def check_operators(pair, jobs):
    """Refuses a pair whose device cannot run an operator of its space, where the run trains its model."""
    rules_to_run = rules_of(pair.model, jobs)
    found = MATRIX.configuration(pair)
    if not found["profile"]["lut"] and rules_to_run & {"pretrain", "finetune"}:
        logger.info(
            f"Checking that {pair.device} can run every operator of {pair.model} ..."
        )
        compiled = compiled_of(pair.model, jobs)
        cost = feasibility.check_operators(found, compiled)
        if cost:
            logger.info(cost)
        if compiled is None:
            COMPILED.add(pair.model)


def tell_altered():
    """Says which results somebody has changed since their rules wrote them; dates do not show all changes.

    This is also said where nothing is to be done, in which case Snakemake calls none of its hooks.
    """
    folders = [
        Path("results") / part
        for pair in MATRIX.pairs
        for part in (pair.model, Path(*pair))
    ]
    try:
        if found := contents.altered_sentence(contents.altered(folders)):
            logger.error(f"autotailor: {found}")
    except (AutoTailorError, OSError) as error:
        logger.error(f"autotailor: {error}")


def tell_absent():
    """Says in a dry run, which needs no device, at which devices the run would stop."""
    for pairs in measured_pairs():
        try:
            configuration.check_device(*map(MATRIX.configuration, pairs))
        except (AutoTailorError, OSError) as error:
            logger.error(f"autotailor: the run itself would stop here: {error}")


def telling(execute, tell):
    """Runs the workflow, and says afterwards what a person should know."""

    @functools.wraps(execute)
    def executed(*arguments, **options):
        outcome = execute(*arguments, **options)
        tell()
        return outcome

    return executed


if workflow.is_main_process:
    is_dry = workflow.output_settings.dryrun
    workflow.execute = telling(
        workflow.execute, tell_absent if is_dry else tell_altered
    )


def run_of(pair):
    """The run of a pair in MLflow."""
    found = MATRIX.configuration(pair)
    commit = tracking.git_commit(Path(config["tracking"]["checkout"]))
    return tracking.RunKey(*pair, artifacts.digest(found), flatten(found), commit)


def start_tracking():
    """Begins the parent run of each pair, and starts what records the runs, before the first rule."""
    runs = [run_of(pair) for pair in MATRIX.pairs]
    try:
        started = tracking.start(Path("mlflow.db"), TRACKING, *runs)
    except (AutoTailorError, OSError) as error:
        refuse(error)
    if not started:
        logger.warning(
            f"MLflow does not record this run yet; the next run will. See {TRACKING / 'recorder.log'}"
        )


def stop_tracking(status):
    """Closes the parent runs, and waits until MLflow has what the rules have recorded."""
    if not tracking.stop(TRACKING, status):
        logger.warning(
            "MLflow has not taken all of this run yet; the next run publishes the rest, and so does "
            f"'python -m autotailor.tracking publish'. See {TRACKING / 'recorder.log'}"
        )
