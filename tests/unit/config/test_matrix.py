import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from autotailor import config
from autotailor.config import ConfigError, Matrix, Pair

ROOT = Path(__file__).parents[3]


def matrix(
    folder: Path,
    models: Sequence[str] = ("resnet_digits", "mobilenet_digits"),
    devices: Sequence[str] = ("host", "android"),
    *,
    conf: Path = ROOT / "conf",
    reads: bool = False,
    overrides: Sequence[str] = (),
    lut: str | None = None,
) -> Matrix:
    return Matrix(conf, models, devices, overrides, lut=lut, kept=folder, reads=reads)


@pytest.mark.parametrize("value", ["a,b", "[a, b]", ["a", "b", "a"], "a,b,a,"])
def test_names_are_read_in_every_form_and_once(value: object) -> None:
    assert config.split_names(value) == ["a", "b"]


def test_what_is_no_list_of_names_is_left_to_the_schema() -> None:
    assert [config.split_names(value) for value in (3, [3], None)] == [3, [3], None]


def test_each_pair_has_the_configuration_that_it_has_alone(tmp_path: Path) -> None:
    found = matrix(tmp_path, overrides=["seed=3"])
    assert len(found.pairs) == 4
    for model, device in found.pairs:
        alone = config.compose(ROOT / "conf", model, device, ["seed=3"])
        assert alone.pop("cluster") == found.cluster  # which changes no result
        assert found.configuration(Pair(model, device)) == alone
    assert found.pair() == Pair("resnet_digits", "host")
    assert found.pair("mobilenet_digits") == Pair("mobilenet_digits", "host")


def test_processes_of_rules_read_what_the_run_has_composed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair("resnet_digits", "host")
    composed = matrix(tmp_path).configuration(pair)
    monkeypatch.setattr(Matrix, "_compose", None)
    assert matrix(tmp_path, reads=True).configuration(pair) == composed
    with pytest.raises(TypeError):
        matrix(tmp_path, reads=True, overrides=["seed=1"]).configuration(pair)


def test_a_changed_file_of_the_configuration_is_composed_anew(tmp_path: Path) -> None:
    conf, pair = tmp_path / "conf", Pair("resnet_digits", "host")
    shutil.copytree(ROOT / "conf", conf)
    before = matrix(tmp_path / "kept", conf=conf).configuration(pair)
    path = conf / "config.yaml"
    path.write_text(path.read_text().replace("seed: 0", "seed: 7"))
    after = matrix(tmp_path / "kept", conf=conf, reads=True).configuration(pair)
    assert (before["seed"], after["seed"]) == (0, 7)


def test_a_file_that_is_open_in_an_editor_or_not_in_utf8_harms_no_other_configuration(tmp_path: Path) -> None:
    conf, pair = tmp_path / "conf", Pair("resnet_digits", "host")
    (conf / "model").mkdir(parents=True)
    (conf / "model" / ".#mine.yaml").symlink_to("me@computer.1234:5678")  # as Emacs locks a file that was changed
    (conf / "model" / "other.yaml").write_bytes("# Größe\nname: other\n".encode("latin-1"))
    assert matrix(tmp_path / "kept", conf=conf).configuration(pair) == matrix(tmp_path / "own").configuration(pair)
    assert ".#mine" not in config.options(conf, "model")


def test_devices_that_need_different_supernets_are_refused_together(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    shutil.copytree(ROOT / "conf", conf)
    path = conf / "config.yaml"
    path.write_text(path.read_text().replace("seed: 0", "seed: ${oc.select:device.evict_mb,0}"))
    for device in ("host", "macs"):
        path = conf / "device" / f"{device}.yaml"
        path.write_text(path.read_text().replace("evict_mb: 2.0", "evict_mb: 2"))
    message = (
        r"model resnet_digits: the sections .*, seed, .* differ between the devices host and macs, which share one"
    )
    with pytest.raises(ConfigError, match=message):
        matrix(tmp_path / "kept", ["resnet_digits"], ["host", "macs"], conf=conf).check()
    matrix(tmp_path / "kept", ["resnet_digits"], ["host"], conf=conf).check()


def test_every_pair_is_checked_before_any_work(tmp_path: Path) -> None:
    budgets = ["export.budgets=[5]"]
    matrix(tmp_path, ["resnet_digits"], ["macs", "parameters"], overrides=budgets).check()
    with pytest.raises(ConfigError, match=r"lut=lut\.csv is the table of one device, and device names 2"):
        matrix(tmp_path, ["resnet_digits"], ["macs", "parameters"], lut="lut.csv").check()


def test_a_setting_that_one_pair_of_several_lacks_is_refused_with_the_pair(tmp_path: Path) -> None:
    overrides, key = ["device.min_minutes=0"], "unknown key 'device.min_minutes'"
    with pytest.raises(ConfigError, match=rf"^model resnet_digits on device macs: override .* {key}"):
        matrix(tmp_path, devices=("host", "macs"), overrides=overrides).check()
    with pytest.raises(ConfigError, match=rf"^override .* {key}"):
        matrix(tmp_path, ["resnet_digits"], ["macs"], overrides=overrides).check()


def test_two_files_of_one_board_are_one_board(tmp_path: Path) -> None:
    devices = ["host_onnxruntime", "orin", "orin_torch", "android", "host"]
    boards = matrix(tmp_path, devices=devices).boards(devices)
    assert [boards[device] for device in devices] == ["host_onnxruntime", "orin", "orin", "android", "host_onnxruntime"]
