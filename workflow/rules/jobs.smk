"""What a job of a pair needs: inputs that depend on the configuration, threads, and the device for itself."""

from dataclasses import dataclass

from autotailor.runs.folder import MEASURED as MEASURED_TABLES
from autotailor.runs.folder import OF_DEVICE, OF_MODEL

EXPORTED = {
    "subnet": "subnet.json",
    "onnx": "model.onnx",
    "torch": "model.pt",
    "verification": "verification.json",
}
COSTS = {
    device: search.cost_of_device(of_device(device)["device"]) for device in DEVICES
}
SCORES = {model: data.score(of_model(model)["data"]) for model in MODELS}
MEASURED = [device for device in DEVICES if COSTS[device].is_measured]


@dataclass(frozen=True)
class Kind:
    """Pairs whose jobs write the same files: Snakemake needs to know the outputs of a rule before its wildcards.

    Attributes:
        number: of the kind; most runs have one kind.
        models: whose configurations have the same number of budgets.
        devices: for which the same files are exported and measured.
        exports: the names of the exported SubNets.
        converted: files that the runtime of the devices needs beside those of every export.
        is_measured: whether the devices are measured; else budgets limit what the graph says.
    """

    number: int
    models: tuple
    devices: tuple
    exports: tuple
    converted: tuple
    is_measured: bool

    def named(self, rule):
        """The name of a rule for the pairs of this kind."""
        return rule if self.number == 1 else f"{rule}_{self.number}"

    def measured(self, **items):
        """Inputs and outputs that exist only where there is a device."""
        return items if self.is_measured else {}

    @property
    def files(self):
        """The files of an export, by what they are."""
        return EXPORTED | {file.rpartition(".")[2]: file for file in self.converted}

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


def exports_of(model):
    """Names of the exported SubNets of a model."""
    return ("largest", *search.budget_names(of_model(model)["export"]["budgets"]))


def converted_for(device):
    """Files that a device needs: exports hold ncnn's if ncnn can run the network, and must where ncnn measures."""
    is_ncnn = of_device(device)["device"].get("runtime", "").startswith("ncnn")
    return ("model.ncnn.param", "model.ncnn.bin") if is_ncnn else ()


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
        for (converted, is_measured), devices in alike(
            DEVICES, lambda name: (converted_for(name), COSTS[name].is_measured)
        ):
            number = len(found) + 1
            found.append(Kind(number, models, devices, exports, converted, is_measured))
    return found


KINDS = kinds()


def is_trained_here(wildcards):
    """Whether the workflow trains the weights of the original network."""
    return settings(wildcards)["model"]["weights"] == "pretrain"


def pretrained(wildcards):
    """The file of the original network's weights if the workflow trains them, else no file."""
    if not is_trained_here(wildcards):
        return []
    return f"results/{wildcards.model}/pretrained.pt"


def given(wildcards):
    """The SuperNet as training begins with it: weights that arrive trained have their moments."""
    name = "compiled" if is_trained_here(wildcards) else "moments"
    return f"results/{wildcards.model}/{name}.pt"


def teacher(wildcards):
    """The file of the original network where its answers stand for labels that the pictures lack, else no file."""
    if data.has_labels(settings(wildcards)["data"]):
        return []
    return f"results/{wildcards.model}/compiled.pt"


def latencies(wildcards):
    """The tables that predict latencies, and how well; no files where budgets limit what the graph says."""
    if not COSTS[wildcards.device].is_measured:
        return {}
    folder = f"results/{wildcards.model}/{wildcards.device}"
    return {"lut": f"{folder}/lut.csv", "validation": f"{folder}/validation.csv"}


def table_of_device(wildcards):
    """The table to whose machine's speed latencies are scaled; no file where budgets limit what the graph says."""
    return latencies(wildcards).get("lut", [])


def candidates(wildcards):
    """What competes for each budget: measured first where there is a device."""
    is_measured = COSTS[wildcards.device].is_measured
    name = "confirmed" if is_measured else "candidates"
    return f"results/{wildcards.model}/{wildcards.device}/{name}.csv"


def training_metrics(wildcards):
    """The files that say how many images pretraining, finetuning and polishing have seen."""
    names = ["pretrain"] if is_trained_here(wildcards) else []
    folder = f"results/{wildcards.model}"
    return [
        *(f"{folder}/{name}.json" for name in [*names, "finetune"]),
        f"{folder}/{wildcards.device}/polish.json",
    ]


def scaled_uniformly(wildcards):
    """The file of the comparison with uniform scaling if `make compare` has been run, else no file."""
    path = f"results/{wildcards.model}/{wildcards.device}/compare.csv"
    return path if os.path.exists(path) else []


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


def finished(pair):
    """What a finished run of a pair hands back: report, exports, and the tables that questions read.

    Snakemake makes a removed file again only where it is asked for or needed. Files of weights are not asked for, so that
    they can be removed to save space without another training.
    """
    folder = f"results/{pair.model}/{pair.device}"
    absent = () if COSTS[pair.device].is_measured else MEASURED_TABLES
    return [
        f"{folder}/report.html",
        *(f"results/{pair.model}/{name}" for name in OF_MODEL if not is_weights(name)),
        *(
            f"{folder}/{name}"
            for name in OF_DEVICE
            if not is_weights(name) and name not in absent
        ),
        *(
            f"{folder}/exports/{name}/{file}"
            for name in exports_of(pair.model)
            for file in (*EXPORTED.values(), *converted_for(pair.device), "README.md")
        ),
    ]


def is_weights(name):
    """Whether a file holds weights."""
    return name.endswith(".pt")


def compared(file):
    """A file of every pair of this run."""
    return [f"results/{pair.model}/{pair.device}/{file}" for pair in MATRIX.pairs]


POOLED = [
    device
    for device in MEASURED
    if of_device(device)["device"]["runtime"].startswith("ncnn")
]


def is_trained_on(wildcards):
    """Whether the members of the pool are trained on together."""
    return PoolConfig.from_section(settings(wildcards)["pool"]).epochs > 0


def weights_of_pool(wildcards):
    """The SuperNet whose weights the members of the pool share."""
    folder = f"results/{wildcards.model}"
    if is_trained_on(wildcards):
        return f"{folder}/{wildcards.device}/pool_supernet.pt"
    return f"{folder}/supernet.pt"


def training_of_pool(wildcards):
    """What the training of the members says, where there was one."""
    path = f"results/{wildcards.model}/{wildcards.device}/pool_training.json"
    return path if is_trained_on(wildcards) else []


def pools(wildcards):
    """The pools of all pairs whose device runs ncnn."""
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
