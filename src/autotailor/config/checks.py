"""Checks a composed configuration before any work: parameters, files, data, accelerators and the device.

The teachers and the loss that the sections ``finetune`` and ``polish`` name are tried before any work. The rules try
them again, with the data. A run that first trains the original network would come to these rules after hours.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from autotailor.agreement import check_classes
from autotailor.config.names import ConfigError
from autotailor.data.labels import CLASSIFICATION
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.joint import before_race, config_before_race
from autotailor.stages import STAGES
from autotailor.task.registry import of_section

PIXELS = "resolution"
"""The key that sections of pictures have, and those of signals have not."""
MACS = "macs"
"""The metric of devices that count multiply-accumulates."""

SOME = 7
"""Classes with which a loss is tried where their number is not known yet."""
TEACHING = {
    section: tuple(name for name, stage in STAGES.items() if stage.trains and stage.accelerator == (section,))
    for section in ("finetune", "polish")
}
"""Sections that may name a teacher, each with the rules that always train with it."""


def check(config: Mapping[str, Any]) -> None:
    """Checks parameters, files and data before any work, and without contacting the device.

    Args:
        config: a result of ``compose``.

    Raises:
        AutoTailorError: something is invalid; the message names the first problem and its remedy.
    """
    from autotailor import data
    from autotailor.config.run import validate

    validate(config)
    check_joint(config)
    check_space(config["model"])
    check_exits(config)
    check_frozen(config)
    check_stages(config)
    check_cost(config)
    check_files(config["model"])
    check_resumed(config)
    if config["model"].get("weights") == "pretrain" and of_section(config["data"]).has_boxes:
        raise ConfigError(
            "model.weights: pretrain trains with labels alone, and a detector learns from boxes by a loss of its own; "
            "give the trained network (model.weights, or an .onnx file as model.source)"
        )
    if config["model"].get("weights") == "pretrain" and of_section(config["data"]).compares:
        raise ConfigError(
            "model.weights: pretrain trains with labels alone, and vectors are learnt by a loss of their own; give the "
            "trained network (model.weights, or an .onnx file as model.source)"
        )
    if config["model"].get("weights") == "pretrain" and not data.has_labels(config["data"]):
        raise ConfigError(
            "model.weights: pretrain trains with labels, and data.labels is false; give the trained network "
            "(model.weights, or an .onnx file as model.source), which then teaches alone"
        )
    check_augmentation(config)
    data.check(config["data"])
    check_classes(config["model"], config["data"])
    check_named_code(config)


def check_augmentation(config: Mapping[str, Any]) -> None:
    """Raises DataError where a training would change pictures without their masks or boxes, or series as pictures."""
    from autotailor.data import has_labels
    from autotailor.data.augmentation.config import AugmentationConfig
    from autotailor.task import of_section

    task = of_section(config["data"])
    has_maps = (task.has_maps or task.has_boxes) and has_labels(config["data"])
    sections = {"model.pretrain": config["model"]["pretrain"], **{n: config[n] for n in ("finetune", "polish")}}
    for name, section in sections.items():
        if section and section.get("augmentation"):
            augmentation = AugmentationConfig.from_section(section["augmentation"])
            if has_maps:
                augmentation.check_maps(name)
            if config["data"].get("kind") == "series":
                augmentation.check_signals(1, where=name)


def check_joint(config: Mapping[str, Any]) -> None:
    """Refuses a training before the race with parameters that cannot be together; the race comes after hours.

    Raises:
        ConfigError: the processes of ``polish`` cannot train with the parameters of ``finetune``.
    """
    try:
        config_before_race(config["polish"], config["finetune"])
    except TrainingError as error:
        raise ConfigError(
            f"polish.joint trains with the parameters of finetune in the processes of polish: {error}, or set "
            "polish.joint.epochs to 0"
        ) from error


def check_space(model: Mapping[str, Any]) -> None:
    """Refuses a space that fits no network of the model's resolution; the network is compiled after its training.

    Raises:
        ConfigError: a name is unknown, or a value cannot be.
    """
    from autotailor.ir.errors import SpaceError
    from autotailor.ir.proposal.section_check import check_section

    try:
        check_section(model["space"], model["resolution"])
    except SpaceError as error:
        raise ConfigError(f"model.{error}") from error


def check_exits(config: Mapping[str, Any]) -> None:
    """Raises ConfigError where exits are asked for, and the task is not classification or exits save nothing."""
    from autotailor import search

    if config["model"]["space"].get("exits") is None:
        return
    task, cost = of_section(config["data"]), search.cost_of_device(config["device"])
    if task.name != CLASSIFICATION:
        raise ConfigError(
            f"model.space.exits: an exit answers with the class of a picture, and data.task is {task.name}; leave "
            "exits out, or take a classifier"
        )
    if not cost.is_measured and cost.name != MACS:
        raise ConfigError(
            f"model.space.exits: a picture that leaves early saves no {cost.title}, which device="
            f"{config['device']['name']} counts; leave exits out, or take device=macs or a device"
        )


def check_frozen(config: Mapping[str, Any]) -> None:
    """Raises ConfigError where all weights are frozen that would be trained."""
    finetune, space = config["finetune"], config["model"]["space"]
    if finetune["epochs"] and finetune.get("freeze") and not space.get("alternatives"):
        raise ConfigError(
            "finetune.freeze: alternatives of blocks alone are trained, and model.space.alternatives asks for none; "
            "ask for some, or leave freeze out"
        )


def check_stages(config: Mapping[str, Any]) -> None:
    """Checks the data of the stages before that of the task.

    Raises:
        AutoTailorError: data are missing, or are signals for a network of pictures, or the other way round.
    """
    from autotailor import data

    for stage in config["finetune"].get("stages") or ():
        first = stage["data"]
        data.check(first)
        if (PIXELS in first) != (PIXELS in config["data"]):
            kinds = ("pictures", "signals") if PIXELS in first else ("signals", "pictures")
            raise ConfigError(
                f"finetune.stages: data {first['name']} holds {kinds[0]}, and the network takes {kinds[1]}; name data "
                "of its kind"
            )


def check_cost(config: Mapping[str, Any]) -> None:
    """Checks the device, or the LUT that replaces the device; where budgets limit what the graph says, there is none.

    Raises:
        AutoTailorError: the device, the LUT or a budget cannot be used, or there is a LUT and no device.
    """
    from autotailor import profiling, search

    section, lut, budgets = config["device"], config["profile"]["lut"], config["export"]["budgets"]
    cost = search.cost_of_device(section)
    search.check_budgets(budgets, cost, config["model"]["space"].get("exits") is not None)
    if cost.is_measured:
        device = profiling.DeviceConfig.from_section(section)
        needs_energy = "energy_mj" in search.needed_columns(budgets)
        if lut:
            if not Path(lut).expanduser().is_file():
                raise ConfigError(
                    f"profile.lut: no file {Path(lut).resolve()}; name a lut.csv that the rule profile has made, or "
                    "leave lut=... out"
                )
            table = profiling.read_table(Path(lut), device)
            if needs_energy and not table.column("energy_mj"):
                raise ConfigError(
                    f"export.budgets: a budget limits energy, and {lut} holds none (column energy_mj); leave this "
                    "limit out, or name a table that was measured on a device with a sensor"
                )
        else:
            profiling.check_configuration(device)
            if needs_energy and not device.energy_seconds:
                raise ConfigError(
                    f"export.budgets: a budget limits energy, and device.energy_seconds is 0 for {device.name}, which "
                    "measures none; set device.energy_seconds=8, or leave this limit out"
                )
    elif lut:
        raise ConfigError(
            f"profile.lut: device={section['name']} counts {cost.title} and has no use for latencies; leave lut=... "
            "out, or name the device that the table was measured on"
        )


def check_files(model: Mapping[str, Any]) -> None:
    """Refuses a model whose files are missing, and a model that cannot be trained although the configuration asks.

    Raises:
        ConfigError: a file is missing, or the model cannot be trained from scratch; the message gives the reason.
    """
    source, weights = str(model.get("source") or ""), str(model.get("weights") or "")
    trained_here = weights == "pretrain"
    files = {"source": source if source.endswith(".onnx") else "", "weights": "" if trained_here else weights}
    for key, value in files.items():
        if value and not Path(value).is_file():
            raise ConfigError(
                f"model.{key}: no file {Path(value).resolve()}; put it there, or change {key} in conf/model"
            )
    if trained_here and files["source"]:
        raise ConfigError(
            f"model.weights: pretrain trains a PyTorch network from scratch, and {source} is an ONNX file; set weights "
            f"to null to take the weights of the file, or name timm:NAME or module:factory as model.source"
        )
    if trained_here and not model.get("pretrain"):
        raise ConfigError(
            "model.weights: pretrain needs the section model.pretrain with the parameters of the training; see "
            "conf/model/resnet_digits.yaml"
        )


def check_resumed(config: Mapping[str, Any]) -> None:
    """Raises ConfigError where a training shall go on from a checkpoint that is not there."""
    trainings = {"model.pretrain": config["model"]["pretrain"], "finetune": config["finetune"]}
    for name, section in trainings.items():
        path = (section or {}).get("resume_from")
        if path and not Path(path).is_file():
            raise ConfigError(
                f"{name}.resume_from: no file {Path(path).resolve()}; name a checkpoint, or set it to null"
            )


def check_accelerators(config: Mapping[str, Any]) -> None:
    """Checks before any training that this machine has the accelerators that the configuration names.

    Raises:
        AcceleratorError: an accelerator is missing; the message says what it needs.
    """
    from autotailor.compute.accelerator import check_present

    sections = [config, *config.values(), config["model"]["pretrain"]]
    for section in sections:
        if isinstance(section, Mapping) and "accelerator" in section:
            check_present(section["accelerator"])


def check_compilers(config: Mapping[str, Any]) -> None:
    """Checks before any training that this machine can compile networks, where the configuration wants that.

    Raises:
        CompilationError: it cannot.
    """
    joint = before_race(config["polish"], config["finetune"])
    sections = [("finetune", config["finetune"]), ("polish", config["polish"]), ("finetune", joint or {})]
    for name, section in sections:
        if section.get("compile") is True:
            from autotailor.compute.accelerator import resolve
            from autotailor.compute.compilation import check_compiler

            check_compiler(resolve(section["accelerator"]), f"{name}.compile")


def check_device(*configs: Mapping[str, Any]) -> None:
    """Checks before any training that a device can be used; with an imported LUT (``profile.lut``) none is needed.

    Args:
        configs: of the models that are tailored for the device; it is asked once for all of them.

    Raises:
        AutoTailorError: the device cannot be used.
    """
    from autotailor import profiling, search

    if not configs[0]["profile"]["lut"]:
        needs_energy = any("energy_mj" in search.needed_columns(config["export"]["budgets"]) for config in configs)
        profiling.check(profiling.DeviceConfig.from_section(configs[0]["device"]), needs_energy=needs_energy)


def check_named_code(config: Mapping[str, Any]) -> None:
    """Makes the teachers that a configuration names, and calls its loss; nothing is fetched.

    Args:
        config: a result of ``compose``, whose sections ``model``, ``data``, ``finetune`` and ``polish`` have been
            checked.

    Raises:
        TrainingError: a teacher cannot be made or has other classes than the network, or the loss does not return what
            training needs.
    """
    task, side = of_section(config["data"]), config["data"].get("resolution", 0)
    task.check()
    for section, source in _teachers(config).items():
        from autotailor.finetuning.external_teacher import check_teacher

        check_teacher(source, task, _classes(config), side, f"{section}.teacher")
    if config["finetune"].get("loss"):
        from autotailor import data
        from autotailor.finetuning.config import FinetuneConfig
        from autotailor.finetuning.loss import make_loss

        finetune = FinetuneConfig.from_section(config["finetune"])
        classes, labelled = _classes(config) or SOME, data.has_labels(config["data"])
        make_loss(finetune, task, classes, independent=False, labelled=labelled)


def fetch_teachers(config: Mapping[str, Any], rules: Collection[str]) -> None:
    """Fetches the weights of timm's networks that teach in some rules, and tries the networks.

    Args:
        config: a result of ``compose`` that has been checked.
        rules: names of the rules that will run.

    Raises:
        TrainingError: weights cannot be fetched, or a network cannot teach these classes.
    """
    for section, source in _teachers(config).items():
        if source.startswith("timm:") and not set(rules).isdisjoint(_taught(config, section)):
            from autotailor.finetuning.external_teacher import fetch_teacher

            side = config["data"].get("resolution", 0)
            fetch_teacher(source, of_section(config["data"]), _classes(config), side, f"{section}.teacher")


def _taught(config: Mapping[str, Any], section: str) -> tuple[str, ...]:
    """Rules that train with the teacher of a section."""
    is_joint = section == "finetune" and before_race(config["polish"], config["finetune"]) is not None
    return (*TEACHING[section], "polish") if is_joint else TEACHING[section]


def _teachers(config: Mapping[str, Any]) -> dict[str, str]:
    """Sources of teachers that are neither the original network nor a SubNet, by the section that names them."""
    named = {section: config[section].get("teacher") for section in TEACHING}
    if not config["polish"].get("rounds"):
        del named["polish"]
    return {section: source for section, source in named.items() if isinstance(source, str) and ":" in source}


def _classes(config: Mapping[str, Any]) -> int | None:
    """Number of the network's outputs; None where only the network itself could say it."""
    from autotailor import data

    if (outputs := config["model"].get("num_classes")) is not None:
        return int(outputs)
    names = data.classes(config["data"])
    return None if names is None else len(names)
