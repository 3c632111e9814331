"""What a job of a pair needs: inputs that depend on the configuration, threads, and the device for itself."""

from dataclasses import dataclass

from autotailor.runs.folder import MEASURED as MEASURED_TABLES
from autotailor.runs.folder import OF_DEVICE, OF_MODEL

EXPORT = "{export}"
COSTS = {
    device: search.cost_of_device(of_device(device)["device"]) for device in DEVICES
}
SCORES = {model: task.score(of_model(model)["data"]) for model in MODELS}
MEASURED = [device for device in DEVICES if COSTS[device].is_measured]


@dataclass(frozen=True)
class Kind:
    """Pairs whose jobs write the same files: Snakemake needs to know the outputs of a rule before its wildcards.

    Attributes:
        number: of the kind; most runs have one kind.
        models: whose configurations have the same number of budgets.
        devices: for which the same files are exported and measured.
        exports: the names of the exported SubNets.
        is_ncnn: whether ncnn runs the exports: exports hold its files if ncnn can run the network, and must where it measures.
        is_measured: whether the devices are measured; else budgets limit what the graph says.
    """

    number: int
    models: tuple
    devices: tuple
    exports: tuple
    is_ncnn: bool
    is_measured: bool

    def named(self, rule):
        """The name of a rule for the pairs of this kind."""
        return rule if self.number == 1 else f"{rule}_{self.number}"

    def holds(self, condition):
        """Whether a condition holds that the outputs of a rule depend on."""
        return {"measured": self.is_measured, "ncnn": self.is_ncnn}[condition]

    @property
    def pairs(self):
        """Limits the wildcards of a rule to the pairs of this kind."""
        return {"model": either(self.models), "device": either(self.devices)}


def either(names):
    """A regular expression for a wildcard that is one of these names."""
    return "|".join(map(re.escape, names))


def name_of_fleet(most=120):
    """The folder of the page that compares all pairs; a hash stands for the end of a name that is too long."""
    name = f"{'+'.join(MODELS)}_on_{'+'.join(DEVICES)}"
    return name if len(name) <= most else f"{name[:most]}-{artifacts.digest(name)}"


FLEET = name_of_fleet()
FOLDERS = {"model": "{model}", "device": "{model}/{device}", "fleet": f"fleet/{FLEET}"}
"""Where the files of a stage lie below ``results`` and ``logs``, by what the stage runs once for."""


def exports_of(model):
    """Names of the exported SubNets of a model."""
    return ("largest", *search.budget_names(of_model(model)["export"]["budgets"]))


def is_ncnn(device):
    """Whether ncnn runs networks on a device."""
    return of_device(device)["device"].get("runtime", "").startswith("ncnn")


def alike(names, key):
    """The names in groups of the same key."""
    groups = {}
    for name in names:
        groups.setdefault(key(name), []).append(name)
    return [(found, tuple(group)) for found, group in groups.items()]


def kinds():
    """The kinds of the pairs of this run."""
    found = []
    for exports, models in alike(MODELS, exports_of):
        for facts, devices in alike(
            DEVICES, lambda name: (is_ncnn(name), COSTS[name].is_measured)
        ):
            found.append(Kind(len(found) + 1, models, devices, exports, *facts))
    return found


KINDS = kinds()


def is_trained_here(wildcards):
    """Whether the workflow trains the weights of the original network."""
    return settings(wildcards)["model"]["weights"] == "pretrain"


def is_compared(wildcards):
    """Whether `make compare` has been run."""
    path = f"results/{wildcards.model}/{wildcards.device}/compare.csv"
    return os.path.exists(path)


def has_exits(model):
    """Whether exported SubNets get early exits."""
    return model["space"].get("exits") is not None


def is_screened(wildcards):
    """Whether a budget limits what pictures cost in the mean that may leave a network early."""
    found = settings(wildcards)
    cost = search.cost_of_device(found["device"])
    return bool(search.all_of_exits(found["export"]["budgets"], cost.name))


def is_trained_on(wildcards):
    """Whether the members of the pool are trained on together."""
    return PoolConfig.from_section(settings(wildcards)["pool"]).epochs > 0


def is_distilled(wildcards):
    """Whether the space has alternatives of blocks, which are trained beside them."""
    found = settings(wildcards)
    space = found["model"]["space"] or {}
    return bool(space.get("alternatives")) and found["distil"]["images"] > 0


CONDITIONS = {
    "trained": is_trained_here,
    "distilled": is_distilled,
    "labelled": lambda wildcards: data.labels_suffice(settings(wildcards)["data"]),
    "measured": lambda wildcards: COSTS[wildcards.device].is_measured,
    "ncnn": lambda wildcards: is_ncnn(wildcards.device),
    "compared": is_compared,
    "exits": lambda wildcards: has_exits(settings(wildcards)["model"]),
    "pool_trained": is_trained_on,
    "early": is_screened,
}
"""What the inputs of stages depend on (``autotailor.stages``)."""


def score_title(wildcards):
    """The name of the share of right answers, as titles write it."""
    return SCORES[wildcards.model].title


def together(section):
    """The threads of all processes of a machine that train together; 1 where nothing is trained."""
    return section.get("threads", 1) * section.get("processes", 1)


def pretraining_threads(wildcards):
    """Threads of the training of the original network."""
    found = settings(wildcards)
    return together(found["model"]["pretrain"] or {"threads": found["threads"]})


def moments_threads(wildcards):
    """Threads of the pass that collects moments."""
    return settings(wildcards)["moments"]["threads"]


def distilling_threads(wildcards):
    """Threads of the training of alternatives."""
    return settings(wildcards)["distil"]["threads"]


def sharing_threads(wildcards):
    """Threads where SubNets run side by side."""
    found = settings(wildcards)
    return found["threads"] * found["workers"]


def finetuning_threads(wildcards):
    """Threads of the training of the SuperNet."""
    return max(sharing_threads(wildcards), together(settings(wildcards)["finetune"]))


def polishing_threads(wildcards):
    """Threads of the race of SubNets with weights of their own, and of the joint training before it."""
    found = settings(wildcards)
    joint = before_race(found["polish"], found["finetune"]) or {}
    return max(sharing_threads(wildcards), together(found["polish"]), together(joint))


# One device serves one job at a time. Two files of conf/device that describe one board share a resource.
BOARDS = MATRIX.boards(MEASURED)


def uses(board):
    """How much of a board a job needs: all of it where the job measures on a device of the board, else nothing."""
    return lambda wildcards: 1 if BOARDS.get(wildcards.device) == board else None


ON_DEVICE = {f"device_{board}": uses(board) for board in dict.fromkeys(BOARDS.values())}
workflow.global_resources.update(dict.fromkeys(ON_DEVICE, 1))


def compared(path):
    """A file of every pair of this run."""
    return list(dict.fromkeys(path.format(**pair._asdict()) for pair in MATRIX.pairs))


POOLED = [device for device in MEASURED if is_ncnn(device)]


def pools(wildcards):
    """The pools of all pairs whose device runs ncnn; a network that does not return one row is refused before it is trained."""
    for model in MODELS:
        known = task.of_section(of_model(model)["data"])
        if known.has_maps or known.has_boxes:
            raise WorkflowError(
                f"autotailor: model {model} has the task {known.name}, and a pool answers with one row of numbers, "
                "because its files, its server and its C interface have no places for maps or several outputs; leave out "
                "`pool`: the exports of the run do what the network does"
            )
    found = [
        f"results/{pair.model}/{pair.device}/pool"
        for pair in MATRIX.pairs
        if pair.device in POOLED
    ]
    if not found:
        raise WorkflowError(
            f"autotailor: ncnn runs on none of the devices {', '.join(DEVICES)}, and the members of a pool are networks "
            "of ncnn; name another device, for instance device=host"
        )
    return found
