"""The stages of a run, each described once: rules, reruns, clusters, questions, documentation and tests read this.

A stage is a rule of Snakemake (``workflow/rules/stages.smk`` makes the rules from here), a script
(``workflow/scripts/NAME.py``) and a room that computes. Files are named as they lie in ``results/MODEL`` or
``results/MODEL/DEVICE``; ``{export}`` stands for each exported SubNet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class When:
    """Files that depend on the configuration.

    Attributes:
        condition: its name among ``CONDITIONS`` in ``workflow/rules/jobs.smk``.
        then: the files where the condition holds.
        otherwise: the files where it does not.
    """

    condition: str
    then: Files
    otherwise: Files = ()


@dataclass(frozen=True)
class Shown:
    """A file that Snakemake's report shows.

    Attributes:
        file: the file.
        category: of the report; ``score`` is the name of the share of right answers.
        caption: name of its text in ``workflow/report``; empty: that of the file.
    """

    file: str
    category: str
    caption: str = ""


Files = str | Shown | When | tuple["Files", ...]


def named(files: Files) -> Iterator[str]:
    """All files that may be meant."""
    if isinstance(files, str):
        yield files
    elif isinstance(files, Shown):
        yield files.file
    else:
        for part in (files.then, files.otherwise) if isinstance(files, When) else files:
            yield from named(part)


@dataclass(frozen=True)
class Stage:
    """One stage.

    Attributes:
        name: of its rule, its script and its record.
        says: what the console says while it runs.
        reads: its inputs by the names that the script knows them by.
        writes: its outputs likewise.
        sections: of the configuration, as ``workflow/rules/sections.smk`` names them; another value runs it again.
        of: what it runs once for: ``model``, ``device`` (each model on each device) or ``fleet``.
        only: the condition under which it is there: the device is ``measured`` or runs ``ncnn``, or the run is a
            ``fleet`` of several pairs; empty: always.
        threads: what it computes with, a key of ``THREADS`` in ``workflow/rules/described.smk``; empty: one thread.
        accelerator: keys of the section that names its accelerator; None: it computes on the processor.
        measures: whether it needs a device for itself.
        trains: whether it goes on from its checkpoint also after its code has changed.
        together: whether several processes may train together.
        is_long: whether changed code is told before it runs again, and ``keep=NAME`` keeps what it wrote.
        kept_with: stages whose artifacts are kept with its own; None: all that it depends on.
        on_demand: when it runs, for stages that a run leaves out otherwise.
        computes: whether it needs PyTorch; without PyTorch, seconds of importing are saved.
        is_timed: whether Snakemake writes its seconds into a file.
    """

    name: str
    says: str | When
    reads: Mapping[str, Files]
    writes: Mapping[str, Files]
    sections: tuple[str, ...]
    of: str = "device"
    only: str = ""
    threads: str = ""
    accelerator: tuple[str, ...] | None = None
    measures: bool = False
    trains: bool = False
    together: bool = False
    is_long: bool = False
    kept_with: tuple[str, ...] | None = None
    on_demand: str = ""
    computes: bool = True
    is_timed: bool = True
    inputs: frozenset[str] = field(init=False)
    outputs: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", frozenset(named(tuple(self.reads.values()))))
        object.__setattr__(self, "outputs", frozenset(named(tuple(self.writes.values()))))

    @property
    def is_kind(self) -> bool:
        """Whether it has files of each export, whose names Snakemake must know before it knows the wildcards."""
        return any("{export}" in file for file in (*self.inputs, *self.outputs))


UNLABELLED = When("labelled", (), "compiled.pt")
"""The original network, where its answers stand for labels that the pictures lack, or beside them."""
TABLE = When("measured", "lut.csv")
JUDGED: Mapping[str, Files] = {
    "supernet": "supernet.pt",
    "original": UNLABELLED,
    "sensitivity": "sensitivity.csv",
    "baseline": "sensitivity.json",
}
"""What a rule reads that predicts the accuracy of SubNets and evaluates some."""
TRAINED = ("pretrain", "compile", "moments", "distil", "finetune")

STAGES = {
    stage.name: stage
    for stage in (
        Stage(
            "pretrain",
            "trains the original network {wildcards.model}",
            {},
            {"weights": "pretrained.pt", "history": "pretrain_history.csv", "metrics": "pretrain.json"},
            ("network", "pretrain", "training_data", "threads"),
            of="model",
            threads="pretraining",
            accelerator=("model", "pretrain"),
            trains=True,
            together=True,
            is_long=True,
        ),
        Stage(
            "compile",
            "{wildcards.model} into a SuperNet",
            {"pretrained": When("trained", "pretrained.pt")},
            {"onnx": "model.onnx", "space": "space.json", "supernet": "compiled.pt"},
            ("network", "weights", "space"),
            of="model",
        ),
        Stage(
            "moments",
            "what the weights read, from which slices follow in closed form",
            {"supernet": "compiled.pt"},
            {"supernet": "moments.pt", "metrics": "moments.json"},
            ("training_data", "moments", "calibration", "threads"),
            of="model",
            threads="moments",
        ),
        Stage(
            "distil",
            "trains alternatives of blocks, each towards what its block says",
            {"supernet": "moments.pt"},
            {"supernet": "distilled.pt", "history": "distil_history.csv", "metrics": "distil.json"},
            ("training_data", "distil", "threads"),
            of="model",
            threads="distilling",
            accelerator=("distil",),
            trains=True,
            is_long=True,
        ),
        Stage(
            "finetune",
            "trains the SuperNet's shared weights",
            {"supernet": When("trained", "compiled.pt", When("distilled", "distilled.pt", "moments.pt"))},
            {"supernet": "supernet.pt", "history": "finetune_history.csv", "metrics": "finetune.json"},
            ("training_data", "finetune", "threads"),
            of="model",
            threads="finetuning",
            accelerator=("finetune",),
            trains=True,
            together=True,
            is_long=True,
        ),
        Stage(
            "sensitivity",
            "evaluates single modifications and other SubNets",
            {"supernet": "supernet.pt", "original": UNLABELLED},
            {
                "sensitivity": Shown("sensitivity.csv", "score"),
                "baseline": "sensitivity.json",
                "evaluations": "evaluations.csv",
            },
            ("training_data", "sensitivity", "calibration", "threads"),
            of="model",
            threads="sharing",
            accelerator=("sensitivity",),
            is_long=True,
        ),
        Stage(
            "validate_accuracy",
            "the predicted accuracy of other SubNets against that on the test set",
            {
                **JUDGED,
                "evaluations": "evaluations.csv",
            },
            {"validation": Shown("accuracy_validation.csv", "score")},
            ("data", "sensitivity", "calibration", "threads"),
            of="model",
            threads="sharing",
            accelerator=("sensitivity",),
            is_long=True,
        ),
        Stage(
            "enumerate",
            "the unique fused operators of the space",
            {"supernet": "compiled.pt"},
            {"operators": "operators.csv"},
            ("runtime",),
            only="measured",
        ),
        Stage(
            "heads",
            "the unique fused operators of heads behind the space's stages",
            {"supernet": "compiled.pt"},
            {"operators": "heads.csv"},
            ("runtime", "heads"),
            only="measured",
            on_demand="where `space.exits` asks for exits",
        ),
        Stage(
            "profile",
            "measures each operator on {wildcards.device}",
            {"operators": "operators.csv", "heads": When("exits", "heads.csv"), "supernet": "compiled.pt"},
            {"lut": "lut.csv"},
            ("device", "profile", "validate", "imported"),
            only="measured",
            threads="measuring",
            measures=True,
            is_long=True,
        ),
        Stage(
            "validate",
            "whole SubNets against the sum of their operators",
            {"supernet": "compiled.pt", "lut": "lut.csv"},
            {"validation": Shown("validation.csv", "Latency")},
            ("device", "imported", "validate"),
            only="measured",
            threads="measuring",
            measures=True,
        ),
        Stage(
            "screen",
            "SubNets with early exits, for budgets of what pictures cost in the mean",
            {
                "lut": TABLE,
                "validation": When("measured", "validation.csv"),
                **JUDGED,
            },
            {"limits": "screen.json"},
            ("early", "search", "runtime", "training_data", "sensitivity", "calibration", "threads"),
            threads="sharing",
            accelerator=("sensitivity",),
            on_demand="where a budget is one of exits",
        ),
        Stage(
            "search",
            "the Pareto front of {wildcards.model} for {wildcards.device}",
            {
                "lut": TABLE,
                "validation": When("measured", "validation.csv"),
                **JUDGED,
                "evaluations": "evaluations.csv",
                "early": When("early", "screen.json"),
            },
            {
                "pareto": Shown("pareto.csv", "Front"),
                "accuracy": "accuracy.json",
                "yardstick": "search.json",
                "candidates": "candidates.csv",
                "front": "front.json",
            },
            ("search", "budgets", "runtime", "training_data", "sensitivity", "calibration", "threads"),
            threads="sharing",
            accelerator=("sensitivity",),
        ),
        Stage(
            "confirm",
            "the candidates of each budget on {wildcards.device}",
            {
                "supernet": "supernet.pt",
                "original": UNLABELLED,
                "lut": "lut.csv",
                "validation": "validation.csv",
                "pareto": "pareto.csv",
                "accuracy": "accuracy.json",
                "candidates": "candidates.csv",
            },
            {"confirmed": "confirmed.csv"},
            (
                *("device", "imported", "search", "budgets", "confirm", "validate"),
                *("training_data", "sensitivity", "calibration", "threads"),
            ),
            only="measured",
            threads="confirming",
            accelerator=("sensitivity",),
            measures=True,
        ),
        Stage(
            "train_pool",
            "trains the members of the pool on, which share their weights",
            {"supernet": "supernet.pt", "original": "compiled.pt", "pareto": "pareto.csv"},
            {"supernet": "pool_supernet.pt", "history": "pool_history.csv", "training": "pool_training.json"},
            ("training_data", "train_pool", "members", "threads"),
            only="ncnn",
            threads="finetuning",
            accelerator=("finetune",),
            trains=True,
            together=True,
            is_long=True,
            on_demand="where a pool is asked for",
        ),
        Stage(
            "make_pool",
            "SubNets of the front that share one file of weights",
            {
                "supernet": When("pool_trained", "pool_supernet.pt", "supernet.pt"),
                "original": UNLABELLED,
                "training": When("pool_trained", "pool_training.json"),
                "lut": "lut.csv",
                "pareto": "pareto.csv",
                "accuracy": "accuracy.json",
                "confirmed": "confirmed.csv",
            },
            {"pool": "pool/"},
            ("device", "imported", "data", "calibration", "pool", "sensitivity", "accelerator", "threads"),
            only="ncnn",
            threads="measuring",
            accelerator=(),
            measures=True,
        ),
        Stage(
            "polish",
            "trains the best SubNets of each budget with weights of their own",
            {
                "supernet": "supernet.pt",
                "original": "compiled.pt",
                "baseline": "sensitivity.json",
                "candidates": When("measured", "confirmed.csv", "candidates.csv"),
            },
            {"chosen": "polish.json", "polished": "polished.pt", "race": "polish.csv"},
            ("training_data", "polish", "polish_joint", "threads"),
            threads="polishing",
            accelerator=("polish",),
            trains=True,
            together=True,
            is_long=True,
        ),
        Stage(
            "export",
            "the chosen SubNets as ONNX, ncnn and PyTorch",
            {"supernet": "supernet.pt", "chosen": "polish.json", "polished": "polished.pt"},
            {
                "subnet": "exports/{export}/subnet.json",
                "onnx": "exports/{export}/model.onnx",
                "torch": "exports/{export}/model.pt2",
                "verification": "exports/{export}/verification.json",
                "param": When("ncnn", "exports/{export}/model.ncnn.param"),
                "bin": When("ncnn", "exports/{export}/model.ncnn.bin"),
            },
            ("data", "calibration", "tolerance", "accelerator"),
            accelerator=(),
        ),
        Stage(
            "measure",
            When("measured", "the exported SubNets on {wildcards.device}", "evaluates the exported SubNets"),
            {
                "lut": TABLE,
                "validation": When("measured", "validation.csv"),
                "confirmed": When("measured", "confirmed.csv"),
                "original": "compiled.pt",
                "supernet": "supernet.pt",
                "accuracy": "accuracy.json",
                "chosen": "polish.json",
                "polished": "polished.pt",
                "onnx": "exports/{export}/model.onnx",
                "converted": When("ncnn", ("exports/{export}/model.ncnn.param", "exports/{export}/model.ncnn.bin")),
            },
            {
                "contributors": When("measured", "contributors.csv"),
                "summary": Shown("summary.csv", "Front"),
                "pictures": "pictures.json",
            },
            ("device", "imported", "data", "calibration", "measure", "budgets"),
            threads="measuring",
            measures=True,
        ),
        Stage(
            "exits",
            "early exits of the exported SubNets",
            {
                "lut": TABLE,
                "original": "compiled.pt",
                "supernet": "supernet.pt",
                "chosen": "polish.json",
                "polished": "polished.pt",
            },
            {"exits": "exits.json", "files": "exits/"},
            (
                *("exits", "device", "imported", "data", "calibration", "polish", "measure"),
                *("tolerance", "accelerator", "threads", "early"),
            ),
            threads="polishing",
            accelerator=("polish",),
            measures=True,
            trains=True,
            is_long=True,
            on_demand="where `space.exits` asks for exits",
        ),
        Stage(
            "compare",
            "the network scaled uniformly and trained alone",
            {
                "original": "compiled.pt",
                "training": (When("trained", "pretrain.json"), "finetune.json", "polish.json"),
                "summary": "summary.csv",
                "lut": TABLE,
            },
            {"comparison": Shown("compare.csv", "Front")},
            ("data", "finetune", "compare", "device", "threads"),
            threads="measuring",
            accelerator=("finetune",),
            measures=True,
            trains=True,
            is_long=True,
            kept_with=TRAINED,
        ),
        Stage(
            "report",
            "writes report.html and the cards of the exports",
            {
                "operators": When("measured", "operators.csv"),
                "lut": TABLE,
                "validation": When("measured", "validation.csv"),
                "contributors": When("measured", "contributors.csv"),
                "confirmed": When("measured", "confirmed.csv"),
                "space": "space.json",
                "sensitivity": "sensitivity.csv",
                "baseline": "sensitivity.json",
                "accuracy_validation": "accuracy_validation.csv",
                "pareto": "pareto.csv",
                "yardstick": "search.json",
                "summary": "summary.csv",
                "pictures": "pictures.json",
                "chosen": "polish.json",
                "candidates": "candidates.csv",
                "polish": "polish.csv",
                "exits": When("exits", "exits.json"),
                "compare": When("compared", "compare.csv"),
                "exports": ("exports/{export}/subnet.json", "exports/{export}/verification.json"),
            },
            {
                "card": "exports/{export}/README.md",
                "latency": When("measured", Shown("figures/latency.svg", "Latency")),
                "contributors": When("measured", Shown("figures/contributors.svg", "Latency")),
                "report": Shown("report.html", "Report"),
                "front": Shown("figures/front.svg", "Front"),
                "accuracy": Shown("figures/accuracy.svg", "score"),
                "sensitivity": Shown("figures/sensitivity.svg", "score"),
                "configuration": "configuration.json",
                "timings": "timings.csv",
            },
            ("configuration", "kept"),
            computes=False,
            is_timed=False,
        ),
        Stage(
            "fleet",
            "compares all networks on all devices",
            {
                "configurations": "configuration.json",
                "summaries": "summary.csv",
                "timings": "timings.csv",
                "supernets": "supernet.pt",
            },
            {name: f"{name}.csv" for name in ("best", "front", "exports", "single", "effort")}
            | {"page": Shown("index.html", "Fleet", "fleet")},
            ("models", "devices"),
            of="fleet",
            only="fleet",
            is_timed=False,
        ),
    )
}
WRITER = {file: stage for stage in STAGES.values() for file in stage.outputs}
"""The stage that writes each file."""


def register(stage: Stage) -> None:
    """Adds a stage behind the stages that it reads from.

    Raises:
        ValueError: another stage has its name, or writes one of its files.
    """
    if stage.name in STAGES or stage.outputs & WRITER.keys():
        raise ValueError(f"stage {stage.name!r}: a stage has this name or writes one of its files; choose other names")
    STAGES[stage.name] = stage
    WRITER.update(dict.fromkeys(stage.outputs, stage))


def before(name: str) -> tuple[str, ...]:
    """The stages that a stage depends on, in the order of a run."""
    earlier, left = set[str](), [name]
    while left:
        direct = {WRITER[file].name for file in STAGES[left.pop()].inputs} - earlier
        earlier |= direct
        left += direct
    return tuple(stage for stage in STAGES if stage in earlier)


def kept_with(name: str) -> tuple[str, ...]:
    """The stages whose artifacts ``keep=NAME`` keeps beside its own."""
    stage = STAGES[name]
    return before(name) if stage.kept_with is None else stage.kept_with
