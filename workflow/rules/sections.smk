"""The configuration sections that a rule depends on, with the digests of what the sections name."""

from autotailor import contents, data, search, task
from autotailor.finetuning.joint import before_race
from autotailor.pool.config import PoolConfig

PLANNED = STATE / "contents"
RUNTIME = ("name", "transport", "runtime", "precision", "fusion", "options")
NETWORK = ("name", "source", "resolution", "num_classes", "batch_norm", "output")
# Keys of the exits on which the operators of heads depend.
HEADS = ("after", "head")
# What a rule is not told of where it is None, so that runs of before, which have no such section, can be kept.
OPTIONAL = ("polish_joint", "heads", "early")
# Sections that rules read under another name; what they name differs. Rules that look at no test picture ask for
# training_data, so that a change of test pictures does not train anew.
READ_AS_SECTION = {"training_data": "data"}


@functools.cache
def slices(pair):
    """The sections of a pair by the names that rules ask for."""
    found = MATRIX.configuration(pair)
    model, device, lut = found["model"], found["device"], found["profile"]["lut"]
    cost = search.cost_of_device(device)
    is_measured = cost.is_measured
    early = search.all_of_exits(found["export"]["budgets"], cost.name)
    exits = model["space"].get("exits")
    pool = PoolConfig.from_section(found["pool"])
    return {
        **{name: found[name] for name in found if name != "model"},
        "training_data": found["data"],
        "network": {key: model[key] for key in NETWORK if key in model},
        "weights": model["weights"],
        "pretrain": model["pretrain"],
        "space": {key: model["space"][key] for key in model["space"] if key != "exits"},
        "exits": exits,
        "heads": exits and {key: exits[key] for key in HEADS if key in exits},
        "early": {"exits": exits, "budgets": early} if early else None,
        "calibration": found["finetune"]["calibration"],
        "runtime": (
            {key: device.get(key) for key in RUNTIME} if is_measured else device
        ),
        "polish": {
            key: found["polish"][key] for key in found["polish"] if key != "joint"
        },
        "polish_joint": before_race(found["polish"], found["finetune"]),
        "train_pool": pool.training(found["finetune"]),
        "members": {"members": pool.members, "slowdown": pool.slowdown},
        "profile": {"max_minutes": found["profile"]["max_minutes"]},
        "imported": artifacts.file_digest(Path(lut).expanduser()) if lut else None,
        "budgets": found["export"]["budgets"],
        "tolerance": found["export"]["tolerance"],
        "configuration": found,
        "models": MODELS,
        "devices": DEVICES,
    }


def weights_content(weights):
    """Digest of a file of weights; None where the workflow trains the weights."""
    return None if weights == "pretrain" else contents.weights_content(weights)


def runtime_content(device):
    """Digests of what measures on a device; None where nothing is measured."""
    is_measured = search.cost_of_device(device).is_measured
    return contents.runtime_content(device) if is_measured else None


# Digests of the data, files and libraries that sections name but do not contain.
CONTENTS = {
    "data": data.fingerprint,
    "training_data": data.training_fingerprint,
    "finetune": contents.training_content,
    "polish": contents.training_content,
    "polish_joint": contents.training_content,
    "train_pool": contents.training_content,
    "network": lambda network: contents.network_content(network["source"]),
    "weights": weights_content,
    "device": runtime_content,
    "tolerance": lambda tolerance: contents.exporter_content(),
    "pool": lambda pool: contents.exporter_content(),
}
FOUND = {}


def content(name, section):
    """Digest of what a section names, computed when the run is planned; rules read the digest from a file."""
    path = PLANNED / f"{artifacts.digest([name, section])}.json"
    if path in FOUND:
        return FOUND[path]
    if not workflow.is_main_process and path.exists():
        FOUND[path] = artifacts.read_json(path)["content"]
        return FOUND[path]
    try:
        FOUND[path] = CONTENTS[name](section)
        artifacts.write_json(path, {"content": FOUND[path]})
    except (AutoTailorError, OSError) as error:
        refuse(error)
    return FOUND[path]


def sections(*names):
    """The configuration sections that a rule depends on, with the digests of what the sections name."""

    def value(wildcards):
        pair = pair_of(wildcards)
        known = slices(pair)
        absent = {name for name in OPTIONAL if known[name] is None}
        asked = [name for name in names if name not in {"kept", *absent}]
        found = {READ_AS_SECTION.get(name, name): known[name] for name in asked}
        found |= {
            f"{name}_content": content(name, known[name])
            for name in asked
            if name in CONTENTS
        }
        return found | ({"kept": kept(pair)} if "kept" in names else {})

    return value
