import itertools
import re
import shutil
from pathlib import Path

import pytest

from autotailor import config
from autotailor.config import ConfigError
from autotailor.ir.proposal.request import SpaceRequest

ROOT = Path(__file__).parents[3]
CONF = ROOT / "conf"

MODELS = config.options(CONF, "model")
DEVICES = config.options(CONF, "device")
TRAINED_HERE = {"resnet_digits": ("mixed", "default"), "vit_digits": ("transformer", "transformer")}
PLENTY = {"trained_digits": ("none", "default")}
FEW = {*zip(itertools.cycle(MODELS), DEVICES), *zip(MODELS, itertools.cycle(DEVICES))}  # each at least once


@pytest.mark.parametrize(
    ("model", "device"),
    [
        pytest.param(*pair, id="-".join(pair), marks=() if pair in FEW else (pytest.mark.sweep,))
        for pair in itertools.product(MODELS, DEVICES)
    ],
)  # fmt: skip
def test_every_model_and_device_composes_to_plain_values_of_the_schema(model: str, device: str) -> None:
    composed = config.compose(CONF, model, device)
    config.validate(composed)
    assert composed["model"]["name"] == model
    assert composed["device"]["name"] == device
    assert type(composed["model"]["space"]) is dict


@pytest.mark.parametrize("group", ["data", "finetune", "recipe", "search"])
def test_every_file_of_a_group_can_be_chosen(group: str) -> None:
    for name in config.options(CONF, group):
        composed = config.compose(CONF, "resnet_digits", "host", [f"{group}={name}"])
        assert composed[group]["name"] == {"auto": "mixed"}.get(name, name)


@pytest.mark.parametrize("name", config.options(CONF, "method"))
def test_every_method_composes_and_its_space_is_read(name: str) -> None:
    composed = config.compose(CONF, "trained_digits", "host", [f"method={name}"])
    config.validate(composed)
    assert composed["method"] == name
    SpaceRequest.from_config(composed["model"]["space"])


def test_a_method_takes_the_place_of_the_models_space_and_overrides_that_of_both() -> None:
    ours = config.compose(CONF, "trained_digits", "host")
    theirs = config.compose(CONF, "trained_digits", "host", ["method=legodnn", "sensitivity.evaluations=3"])
    assert ours["model"]["space"]["depth"]
    request = SpaceRequest.from_config(theirs["model"]["space"])
    assert request.alternatives == {"*": {"shrunk": ("shrunk:0.8", "shrunk:0.6", "shrunk:0.4", "shrunk:0.2")}}
    assert (request.resolution, request.depth, request.width, request.blocks) == ((), {"*": ()}, {"*": ()}, {})
    assert (theirs["sensitivity"]["evaluations"], theirs["search"]["candidates"]) == (3, 1)


@pytest.mark.parametrize("model", MODELS)
def test_only_the_embedded_networks_are_trained_at_a_high_rate_whatever_the_strategy(model: str) -> None:
    """A network that arrives trained forgets at the rates of the embedded ones."""
    rates = {"resnet_digits": 1.6e-2, "trained_digits": 1.6e-2, "mobilenet_digits": 1.6e-2, "vit_digits": 1e-2}
    for overrides in ([], ["finetune=sandwich"], ["finetune=compofa"]):
        composed = config.compose(CONF, model, "host", overrides)
        assert composed["finetune"]["lr"] == rates.get(model, 2e-3)
    assert config.compose(CONF, model, "host", ["finetune.lr=0.5"])["finetune"]["lr"] == 0.5


def with_own_pretraining(folder: Path, section: str) -> Path:
    """A folder of configuration files with the model ``mine``, whose section ``pretrain`` is this text."""
    shutil.copytree(CONF, folder / "conf")
    text = (CONF / "model" / "resnet_digits.yaml").read_text()
    before, _, rest = text.partition("pretrain:\n")
    after = re.sub(r"\A(?:  .*\n)*", "", rest)
    own = (before + section + after).replace("resnet_digits", "mine")
    (folder / "conf" / "model" / "mine.yaml").write_text(own)
    return folder / "conf"


def test_a_composition_follows_changed_files_and_is_its_callers_own(tmp_path: Path) -> None:
    own = with_own_pretraining(tmp_path, "pretrain:\n  epochs: 3\n  batch_size: 64\n")
    config.compose(own, "mine", "host")["model"]["pretrain"]["epochs"] = 7
    assert config.compose(own, "mine", "host")["model"]["pretrain"]["epochs"] == 3
    path = own / "model" / "mine.yaml"
    path.write_text(path.read_text().replace("epochs: 3", "epochs: 12"))
    assert config.compose(own, "mine", "host")["model"]["pretrain"]["epochs"] == 12


def test_an_own_pretraining_takes_from_the_top_level_what_it_leaves_out(tmp_path: Path) -> None:
    """Else it would train on the processor beside a GPU, and nobody would be told."""
    own = with_own_pretraining(tmp_path, "pretrain:\n  epochs: 3\n  batch_size: 64\n  precision: bf16\n")
    composed = config.compose(own, "mine", "host", ["accelerator=cuda:1", "processes=2", "seed=5"])
    expected = {"epochs": 3, "batch_size": 64, "precision": "bf16"}
    shared = {"accelerator": "cuda:1", "processes": 2, "nodes": 1, "seed": 5}
    assert composed["model"]["pretrain"] == expected | shared


def test_what_an_own_pretraining_takes_from_the_top_level_can_be_overridden(tmp_path: Path) -> None:
    own = with_own_pretraining(tmp_path, "pretrain:\n  epochs: 3\n")
    overrides = ["accelerator=cuda:1", "model.pretrain.accelerator=cpu", "model.pretrain.epochs=2"]
    pretrain = config.compose(own, "mine", "host", overrides)["model"]["pretrain"]
    assert (pretrain["accelerator"], pretrain["epochs"]) == ("cpu", 2)
    with pytest.raises(config.ConfigError, match=r"Did you mean 'model\.pretrain\.accelerator'"):
        config.compose(own, "mine", "host", ["model.pretrain.acelerator=cpu"])


@pytest.mark.parametrize("empty", ["{}", "null"])
def test_a_model_without_pretraining_takes_nothing_for_it(tmp_path: Path, empty: str) -> None:
    own = with_own_pretraining(tmp_path, f"pretrain: {empty}\n")
    composed = config.compose(own, "mine", "host")
    assert not composed["model"]["pretrain"]
    config.check(composed | {"model": composed["model"] | {"weights": None}})
    with pytest.raises(config.ConfigError, match=r"unknown key 'model\.pretrain\.accelerator'"):
        config.compose(own, "mine", "host", ["model.pretrain.accelerator=cpu"])


@pytest.mark.parametrize(
    ("model", "polish"),
    [("resnet_digits", "default"), ("mobilenet_digits", "short"), ("vit_digits", "transformer"), ("levit", "default")],
)
def test_the_numbers_of_the_top_level_hold_for_every_training_that_names_none(model: str, polish: str) -> None:
    def asked(*overrides: str) -> list[tuple[int, int]]:
        composed = config.compose(CONF, model, "host", [f"polish={polish}", "processes=2", "nodes=3", *overrides])
        trainings = composed["model"]["pretrain"], composed["finetune"], composed["polish"]
        return [(section["processes"], section["nodes"]) for section in trainings]

    assert asked() == [(2, 3), (2, 3), (2, 3)]
    assert asked("polish.processes=1", "finetune.nodes=4") == [(2, 3), (2, 4), (1, 3)]
    assert asked("finetune.processes=4", "polish.nodes=1") == [(2, 3), (4, 3), (2, 1)]


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=f"unknown model 'resnet_digts'.*{', '.join(MODELS)}"):
        config.compose(CONF, "resnet_digts", "host")
    with pytest.raises(ConfigError, match=f"unknown device 'toaster'.*{', '.join(DEVICES)}"):
        config.compose(CONF, "resnet_digits", "toaster")


def test_a_model_may_choose_its_own_data_and_an_override_still_wins(tmp_path: Path) -> None:
    for group, name, text in [
        ("data", "ours", "name: ours"),
        ("data", "theirs", "name: theirs"),
        ("device", "here", "name: here"),
        ("model", "mine", "defaults: [{override /data@_global_.data: theirs}]\nname: mine"),
        (".", "config", "defaults: [{data: ours}, {model: mine}, {device: here}, _self_]"),
    ]:
        path = tmp_path / group / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert config.compose(tmp_path, "mine", "here")["data"] == {"name": "theirs"}
    assert config.compose(tmp_path, "mine", "here", ["data=ours"])["data"] == {"name": "ours"}


def test_a_file_that_is_no_yaml_is_named_with_its_line(tmp_path: Path) -> None:
    shutil.copytree(CONF, tmp_path / "conf")
    path = tmp_path / "conf" / "model" / "mine.yaml"
    path.write_text("model:\n  name: mine\n   source: models/mine.onnx\n")
    with pytest.raises(ConfigError, match=rf"^{re.escape(str(path))}, line 3 is no valid YAML: mapping values"):
        config.compose(tmp_path / "conf", "mine", "host")


@pytest.mark.parametrize(("name", "overrides"), [("model/mine", []), ("data/mine", ["data=mine"])])
def test_a_file_in_another_encoding_than_utf8_is_named(tmp_path: Path, name: str, overrides: list[str]) -> None:
    shutil.copytree(CONF, tmp_path / "conf")
    shutil.copy(CONF / "model" / "resnet_digits.yaml", tmp_path / "conf" / "model" / "mine.yaml")
    path = tmp_path / "conf" / f"{name}.yaml"
    path.write_bytes("# Größe\nname: mine\n".encode("latin-1"))
    with pytest.raises(ConfigError, match=rf"^{re.escape(str(path))} is no text in UTF-8 .*; store it"):
        config.compose(tmp_path / "conf", "mine", "host", overrides)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", r"mine\.yaml is empty: write it; `python -m autotailor inspect SOURCE --data FOLDER --yaml` prints"),
        ("# nothing yet\n", "is empty: write it"),
        ("hello\n", "holds 'hello' and no keys with values: write it"),
        (
            "name: mine\nsource: models/mine.onnx\n",
            "data.resolution takes the value of model.resolution, which no",
        ),
    ],
)
def test_a_file_that_lacks_what_others_need_is_told_so(content: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text(content)
    with pytest.raises(ConfigError, match=told):
        config.compose(tmp_path, "mine", "host")


def test_a_list_in_the_place_of_a_mapping_is_told_with_the_file_that_has_it(tmp_path: Path) -> None:
    (tmp_path / "polish").mkdir()
    (tmp_path / "polish" / "mine.yaml").write_text("defaults: [default@_here_, _self_]\njoint: [1, 2]\n")
    with pytest.raises(ConfigError, match=r"In 'polish/mine': Cannot merge .* no list in the place of a mapping"):
        config.compose(tmp_path, "resnet_digits", "host", ["polish=mine"])


def files(model: str, *overrides: str) -> tuple[str, str]:
    found = config.compose(CONF, model, "macs", overrides)
    return found["finetune"]["name"], found["polish"]["name"]


def test_only_weights_that_arrive_are_polished_alone() -> None:
    assert {model: files(model) for model in (*TRAINED_HERE, *PLENTY)} == TRAINED_HERE | PLENTY
    assert files("resnet50") == ("none", "given")
    assert files("resnet_digits", "model.weights=mine.pt") == ("none", "given")
    assert files("resnet50", "model.weights=pretrain") == ("mixed", "default")


@pytest.mark.parametrize(
    ("overrides", "found"),
    [
        (["finetune=mixed"], ("mixed", "given")),
        (["polish=short"], ("none", "short")),
        (["finetune=sandwich", "polish=default"], ("sandwich", "default")),
    ],
)
def test_a_file_that_the_user_names_wins(overrides: list[str], found: tuple[str, str]) -> None:
    assert files("resnet50", *overrides) == found


@pytest.mark.parametrize(
    ("model", "overrides", "judge"),
    [
        ("resnet_digits", [], "auto"),
        ("resnet50", [], "divergence"),
        ("resnet50", ["polish=none", "finetune=mixed"], "divergence"),
        ("resnet50", ["sensitivity.judge=accuracy"], "accuracy"),
        ("resnet50", ["method=adaptivenet"], "accuracy"),
    ],
)
def test_subnets_of_weights_that_arrive_are_judged_by_divergence(model: str, overrides: list[str], judge: str) -> None:
    assert config.compose(CONF, model, "macs", overrides)["sensitivity"]["judge"] == judge


def test_a_key_that_the_user_names_wins() -> None:
    found = config.compose(CONF, "resnet50", "macs", ["finetune.epochs=3", "polish.lr=1e-4"])
    assert (found["finetune"]["epochs"], found["finetune"]["strategy"]) == (3, "mixed")
    assert (found["polish"]["lr"], found["polish"]["rates"]) == (1e-4, [])
    assert config.compose(CONF, "resnet50", "macs")["polish"]["rates"]


def test_an_override_changes_one_value_and_what_refers_to_it() -> None:
    base = config.compose(CONF, "resnet_digits", "host")
    changed = config.compose(CONF, "resnet_digits", "host", ["finetune.epochs=1"])
    assert changed["finetune"].pop("epochs") == 1
    del base["finetune"]["epochs"]
    assert changed == base
    assert config.compose(CONF, "resnet_digits", "host", ["seed=7"])["finetune"]["seed"] == 7


def test_keys_of_exits_that_a_file_leaves_out_can_be_overridden() -> None:
    asked = ["method=adascale", "model.space.exits.epsilon=0.05", "model.space.exits.head=probe"]
    exits = config.compose(CONF, "resnet_digits", "host", asked)["model"]["space"]["exits"]
    assert exits == {"after": ["stage2"], "head": "probe", "images": 4000, "epsilon": 0.05}
    with pytest.raises(ConfigError, match=r"Did you mean 'model\.space\.exits\.images'\?"):
        config.compose(CONF, "resnet_digits", "host", ["method=adascale", "model.space.exits.imags=1"])


def test_keys_of_the_space_that_a_file_leaves_out_can_be_overridden() -> None:
    asked = ["model.space.alternatives={shrunk: [0.5], low_rank: [0.5]}", "model.space.skip=[stem.*]"]
    space = config.compose(CONF, "resnet_digits", "host", asked)["model"]["space"]
    assert space["alternatives"] == {"shrunk": [0.5], "low_rank": [0.5]}
    assert space["skip"] == ["stem.*"]
    plain = config.compose(CONF, "resnet_digits", "host")["model"]["space"]
    assert {key: space[key] for key in plain if key not in ("alternatives", "skip")} == {
        key: value for key, value in plain.items() if key not in ("alternatives", "skip")
    }
    with pytest.raises(ConfigError, match=r"Did you mean 'model\.space\.alternatives'\?"):
        config.compose(CONF, "resnet_digits", "host", ["model.space.alternative={shrunk: [0.5]}"])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("finetune.epoch=1", r"Did you mean 'finetune.epochs'\? Known: .*finetune.calibration"),
        ("finetun.epochs=1", "unknown key 'finetun.epochs'.*Known: .*finetune"),
        ("finetune.epochs.deep=1", "unknown key"),
        ("+finetune.new=1", "changed, not added"),
        ("~finetune.epochs", "changed, not added"),
        ("data=digit", "unknown data 'digit'. Did you mean 'digits'"),
        ("finetune.epochs", "expected key=value"),
        ("model=resnet_digits", "--config model="),
    ],
)
def test_an_override_of_something_unknown_lists_what_exists(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config.compose(CONF, "resnet_digits", "host", [override])


def test_an_override_that_does_not_fit_is_told_why_and_where_to_write_it() -> None:
    told = r"blocks': Key 'InvertedResidul' is not in struct.* into the file itself"
    with pytest.raises(ConfigError, match=told):
        config.compose(CONF, "resnet50", "macs", ["model.space.blocks={InvertedResidul:{expand_ratio:[1.0]}}"])


@pytest.mark.parametrize(
    ("text", "overrides"),
    [
        ("[seed=1,data.mean=[0.4,0.5,0.5]]", ["seed=1", "data.mean=[0.4,0.5,0.5]"]),
        ("[model.space.width={head: [0.8, 1.0], '*': [1.0]}, seed=2]",
         ["model.space.width={head: [0.8, 1.0], '*': [1.0]}", "seed=2"]),
        ("a.b=1,c={d: [2, 3]}", ["a.b=1", "c={d: [2, 3]}"]),
        ("[]", []),
    ],
)  # fmt: skip
def test_a_text_that_yaml_took_for_one_word_is_a_list_of_overrides(text: str, overrides: list[str]) -> None:
    assert config.split_overrides(text) == overrides


@pytest.mark.parametrize("value", [["seed=1"], 3, None])
def test_other_values_are_left_to_the_schema(value: object) -> None:
    assert config.split_overrides(value) == value


def test_a_stage_of_finetune_has_the_data_that_it_names_prepared_as_those_of_the_task(tmp_path: Path) -> None:
    shutil.copytree(CONF, tmp_path / "conf")
    (tmp_path / "conf" / "data" / "scenery.yaml").write_text(
        "defaults: [folder@_here_, _self_]\nname: scenery\nroot: scenery\nlabels: false\n"
    )
    asked = ["data=folder", "seed=5", "data.mean=[0.5,0.5,0.5]", "data.workers=0", "recipe=default"]
    stages = "finetune.stages=[{data: scenery, images: 1000}]"
    found = config.compose(tmp_path / "conf", "resnet_digits", "macs", [*asked, stages])
    ((first, images),) = ((stage["data"], stage["images"]) for stage in found["finetune"]["stages"])
    assert (first["name"], first["labels"], first["seed"], images) == ("scenery", False, 5, 1000)
    assert (first["mean"], first["workers"], first["resolution"]) == ([0.5] * 3, 0, found["model"]["resolution"])
    assert "first_data" not in found
    config.validate(found)
    assert config.compose(tmp_path / "conf", "resnet_digits", "macs", asked)["finetune"]["stages"] == []
    with pytest.raises(ConfigError, match=r"unknown data 'scenry'.*scenery"):
        config.compose(tmp_path / "conf", "resnet_digits", "macs", [*asked, stages.replace("scenery", "scenry")])
