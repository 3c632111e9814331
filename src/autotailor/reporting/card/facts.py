"""What a card says of an export, read from the export's folder, ``summary.csv`` and the configuration of its run."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotailor.artifacts import read_json
from autotailor.data.preparation import Judgement, Preparation
from autotailor.reporting.inputs import ReportError
from autotailor.search import Cost, cost_of_device
from autotailor.task.interface import Task
from autotailor.task.registry import of_section, score
from autotailor.task.scores import Score

UNKNOWN = "not known: ask who trained it"
TIMM, TORCHVISION = "timm:", "torchvision.models"

Row = Mapping[str, Any]
NAMED = 100
"""Classes that a card names."""
NCNN = "model.ncnn"
FORMATS = {
    "model.onnx": "ONNX",
    "model.given.onnx": "ONNX, for the original file's images",
    "model.pt2": "PyTorch, for `torch.export.load`",
    NCNN: "ncnn: `model.ncnn.param` and `model.ncnn.bin`",
}


@dataclass(frozen=True)
class Licence:
    """A licence.

    Attributes:
        text: a sentence's part for people.
        identifier: as the Hugging Face hub spells it; "" where it is not known or has no such spelling.
    """

    text: str
    identifier: str = ""


def licence_of_weights(source: str, weights: str | None) -> Licence:
    """The licence of the original network's weights.

    Args:
        source: ``model.source`` of the configuration.
        weights: ``model.weights`` of the configuration.
    """
    if weights == "pretrain":
        return Licence("none to keep: the run trained all weights itself, from scratch")
    if weights is None and source.startswith(TIMM):
        return _of_timm(source.removeprefix(TIMM))
    if weights is not None and source.startswith(f"{TORCHVISION}:"):
        return _of_torchvision(source.removeprefix(f"{TORCHVISION}:"), Path(weights).name)
    return Licence(UNKNOWN)


def _of_timm(name: str) -> Licence:
    import timm  # imported here, because it imports PyTorch

    config: Any = timm.get_pretrained_cfg(name, allow_unregistered=True)
    if config is None or not config.license:
        return Licence(UNKNOWN)
    where = f"{config.architecture}.{config.tag}" if config.tag else config.architecture
    return Licence(f"{config.license}, says timm of {where}", config.license)


def _of_torchvision(name: str, file: str) -> Licence:
    """Of weights whose file has the name of one that torchvision offers for the network."""
    import torchvision  # imported here, because it imports PyTorch

    try:
        weights: Any = torchvision.models.get_model_weights(name)
    except ValueError:
        return Licence(UNKNOWN)
    own = [each for each in weights if Path(each.url).name == file]
    text = own[0].meta.get("license") if own else None
    return Licence(f"{text}, says torchvision of {own[0]}" if text else UNKNOWN)


@dataclass(frozen=True)
class File:
    """One format of an export.

    Attributes:
        name: as in ``verification.json``; ``model.ncnn`` stands for two files.
        kind: the format, for people.
        runtime, version: that ran the file.
        error: largest relative difference from the SubNet in PyTorch.
        same: share of the images with the same answer.
    """

    name: str
    kind: str
    runtime: str
    version: str
    error: float
    same: float


class Cells(dict[str, Any]):
    """A row of a table; empty cells, and those of columns that the table lacks, are None."""

    def __missing__(self, column: str) -> None:
        return None


@dataclass(frozen=True)
class Facts:
    """Everything that the template of a card reads.

    Attributes:
        name: of the export.
        model, device: as the run's folder names them, ``results/MODEL/DEVICE``.
        configuration: of the run.
        subnet: the content of ``subnet.json``.
        verification: the content of ``verification.json``.
        row, original: of the export and of the original network in ``summary.csv``.
        files: formats that the export has.
        preparation: what makes the network's input of a picture.
        licence: of the original network's weights.
        asked: the budget in the words of the configuration; "" where the configuration gives a number of budgets.
        exits: the content of ``exits.json``; None where the run has no early exits.
    """

    name: str
    model: str
    device: str
    configuration: Mapping[str, Any]
    subnet: Mapping[str, Any]
    verification: Mapping[str, Any]
    row: Cells
    original: Cells
    files: tuple[File, ...]
    preparation: Preparation
    licence: Licence
    asked: str
    exits: Mapping[str, Any] | None = None

    @property
    def early(self) -> dict[str, Row]:
        """What the export answers with exits, by name of the budget."""
        rows = {} if self.exits is None else {key: row["with"] for key, row in self.exits["budgets"].items()}
        return {key: row for key, row in rows.items() if row and row["name"] == self.name and row["thresholds"]}

    @property
    def score(self) -> Score:
        """What is reported of the network."""
        return score(self.configuration["data"])

    @property
    def task(self) -> Task:
        """What the network does."""
        return of_section(self.configuration["data"])

    @property
    def cost(self) -> Cost:
        """What budgets limit."""
        return cost_of_device(self.configuration["device"])

    @property
    def is_of_spread_budgets(self) -> bool:
        """Whether the export has one of a number of budgets, which the configuration does not list."""
        return isinstance(self.configuration["export"]["budgets"], int) and self.name.startswith("budget_")

    @property
    def side(self) -> int:
        """Height and width of the network's input, pixels."""
        return int(self.subnet["input_shape"][-1])

    @property
    def network(self) -> str:
        """What the network is, in words."""
        return self.task.network.replace("an image", "a") if self.preparation.signal else self.task.network

    @property
    def reads(self) -> str:
        """What the network takes, in words."""
        if self.preparation.signal:
            return f"signals of {self.preparation.signal.file} numbers"
        return f"RGB pictures of {self.side} × {self.side} pixels"

    @property
    def file(self) -> str:
        """The file that the programs open."""
        return "signal.npy" if self.preparation.signal else "picture.png"

    @property
    def returned(self) -> str:
        """The outputs of a network that is no classifier, with their shapes."""
        shapes = self.subnet["output_shapes"].items()
        return ", ".join(f"`{' '.join(name.replace('`', '').split())}` {shape}" for name, shape in shapes)

    @property
    def class_names(self) -> str:
        """The names of the outputs in their order; of many, some and where the others are."""
        names = [f"`{' '.join(name.replace('`', '').split())}`" for name in self.preparation.classes]
        more = f" ... (all {len(names):,} stand in `subnet.json`)" if len(names) > NAMED else ""
        return ", ".join(names[:NAMED]) + more

    @property
    def transparency(self) -> str:
        """Sentences, with a blank in front, on test pictures with transparency; "" where there are none."""
        judged = self.subnet.get("transparency")
        if not judged:
            return ""
        told = Judgement(**judged)
        count = f" {told.pictures:,} of {told.looked_at:,} test pictures that were looked at have transparent pixels."
        return count + (f" **{told.sentence}.**" if told.differs else "")

    @property
    def scaled(self) -> int:
        """The shorter side of a picture before the centre is cut out, pixels."""
        return round(self.preparation.resolution / self.preparation.crop)

    @property
    def has_ncnn(self) -> bool:
        """Whether the export has ncnn's files."""
        return any(file.name == NCNN for file in self.files)


def read_facts(
    folder: Path,
    name: str,
    configuration: Mapping[str, Any],
    rows: Mapping[str, Row],
    asked: str | None = None,
    pair: tuple[str, str] | None = None,
) -> Facts:
    """The facts of one export.

    Args:
        folder: of the export's files.
        name: of the export in ``summary.csv``.
        configuration: of the run.
        rows: of ``summary.csv`` by name.
        asked: the budget in the user's words; None finds it in the configuration.
        pair: model and device as the run's folder names them; None takes the names that their configurations give.

    Raises:
        ReportError: ``summary.csv`` lacks the export or is of another SubNet, or ``subnet.json`` was written by an
            earlier version.
    """
    subnet, verification = read_json(folder / "subnet.json"), read_json(folder / "verification.json")
    if name not in rows:
        raise ReportError(f"summary.csv: expected a row {name} for the export {folder}; run the rule measure again")
    if not subnet.get("preparation"):
        raise ReportError(f"{folder / 'subnet.json'}: expected the key preparation; run the rule export again")
    if rows[name]["subnet"] != subnet["id"]:
        raise ReportError(
            f"summary.csv: the row {name} is of SubNet {rows[name]['subnet']}, and {folder} holds SubNet "
            f"{subnet['id']}; run the rule measure again"
        )
    model = configuration["model"]
    called, device = pair or (model["name"], configuration["device"]["name"])
    return Facts(
        name=name,
        model=called,
        device=device,
        configuration=configuration,
        subnet=subnet,
        verification=verification,
        row=_known(rows[name]),
        original=_known(rows.get("original", {})),
        files=tuple(
            File(
                each["file"],
                FORMATS.get(each["file"], each["file"]),
                each["runtime"],
                each["version"],
                each["max_relative_error"],
                each["same_predictions"],
            )
            for each in verification["comparisons"]
        ),
        preparation=Preparation.read(subnet["preparation"]),
        licence=licence_of_weights(str(model["source"]), model["weights"]),
        asked=_asked(name, configuration) if asked is None else asked,
    )


def _known(row: Row) -> Cells:
    return Cells((key, v) for key, v in row.items() if not (isinstance(v, float) and math.isnan(v)))


def _asked(name: str, configuration: Mapping[str, Any]) -> str:
    """The budget of ``budget_NN`` as the configuration lists it; "" for other exports, and for a number of budgets."""
    budgets, number = configuration["export"]["budgets"], name.removeprefix("budget_")
    if isinstance(budgets, int) or not number.isdecimal() or int(number) > len(budgets):
        return ""
    budget = budgets[int(number) - 1]
    if isinstance(budget, Mapping):
        return ", ".join(f"{metric} {limit}" for metric, limit in budget.items())
    return str(budget)
