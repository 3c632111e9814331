"""``inspect SOURCE --data FOLDER --yaml``: one file that holds the network, the pictures and nothing to fill in."""

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import onnx_ir
import pytest
import torch
import yaml
from PIL import Image

import autotailor
import boxed
import masked
import networks
from autotailor import config, data, task
from autotailor.__main__ import main
from autotailor.agreement import AgreementError
from autotailor.commands.inspect.own_data import Preprocessing, class_lines, data_lines, read_own_data
from autotailor.compiler.sources.export import export_module
from autotailor.data.files import contents, memory
from autotailor.data.pictures import statistics
from autotailor.data.progress import progress
from picture_files import photo

ROOT = Path(__file__).parents[4]
CLASSES = ("ant", "bee", "cat", "dog", "eel")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path_factory.mktemp("cache") / "contents.sqlite"
    monkeypatch.setattr(memory, "default_path", lambda: path)
    monkeypatch.setattr(contents, "SETTLED_NS", 0)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of five classes, 32x32."""
    path = tmp_path_factory.mktemp("model") / "mine.onnx"
    onnx_ir.save(export_module(networks.make("resnet"), 32), path)
    return path


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Five classes of ten JPEGs, one subfolder each."""
    folder = tmp_path / "my photos"
    for label, name in enumerate(CLASSES):
        (folder / name).mkdir(parents=True)
        for i in range(10):
            photo(100 * label + i, (60, 48)).save(folder / name / f"{i}.jpg", quality=95)
    return folder


def inspect(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["inspect", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def composed(tmp_path: Path, printed: str, *overrides: str) -> dict[str, object]:
    """The printed file in a copy of conf/, composed, validated and checked as the workflow does."""
    conf = tmp_path / "conf"
    shutil.copytree(ROOT / "conf", conf, dirs_exist_ok=True)
    (conf / "model" / "mine.yaml").write_text(printed)
    whole = config.compose(conf, "mine", "host", overrides)
    config.validate(whole)
    config.check(whole)
    return whole


def test_the_printed_file_composes_and_loads_unchanged(
    model: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = inspect(capsys, model, "--data", photos, "--yaml")
    assert (code, err) == (0, "")
    assert max(len(line) for line in out.splitlines()[2:] if str(tmp_path.parent) not in line) <= 120
    assert "# 50 pictures; the median of the shorter sides is 48 pixels." in out
    assert "#   0 ant, 1 bee, 2 cat, 3 dog, 4 eel" in out
    whole = composed(tmp_path, out)
    section = whole["data"]
    assert isinstance(section, dict)
    assert section["root"] == str(photos)
    assert (section["kind"], section["name"], section["resolution"]) == ("folder", "my_photos", 32)
    assert section["workers"] == min(8, contents.cores())
    splits = data.load({**section, "workers": 0})
    assert (splits.num_classes, len(splits.train), len(splits.validation), len(splits.test)) == (5, 40, 5, 5)
    net = autotailor.compile(model)
    assert whole["model"]["space"] == yaml.safe_load(yaml.safe_dump(net.space_section()))  # type: ignore[index]
    path = tmp_path / "conf" / "model" / "mine.yaml"
    again = inspect(capsys, model, "--space", path, "--yaml")[1]
    assert yaml.safe_load(again) == whole["model"]


def test_mean_and_deviation_are_those_of_the_training_pictures(
    model: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = inspect(capsys, model, "--data", photos, "--yaml")[1]
    assert "measured on 40 of 40 training pictures" in out
    section = {**composed(tmp_path, out)["data"], "workers": 0, "crop": 1.0}  # type: ignore[dict-item]
    opened = data.load(section).train.pictures.open  # type: ignore[attr-defined]
    paths = [opened.open.paths[i] for i in opened.ids]
    seen = np.stack([np.asarray(Image.open(path).resize((40, 32), Image.Resampling.BILINEAR)) for path in paths]) / 255
    seen = seen[:, :, 4:36]
    assert section["mean"] == pytest.approx(seen.mean((0, 1, 2)), abs=0.003)
    assert section["std"] == pytest.approx(seen.std((0, 1, 2)), abs=0.003)


def test_mean_and_deviation_that_are_given_win(
    model: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    titles: list[str] = []
    monkeypatch.setattr(statistics, "progress", lambda title, count: titles.append(title) or progress(title, count))
    given = ["--mean", 0.5, 0.4, 0.3, "--std", 0.2, 0.25, 0.3]
    out = inspect(capsys, model, "--data", photos, "--yaml", *given)[1]
    assert "given with --mean and --std" in out
    assert f"{shlex.quote(str(photos))} --mean 0.5 0.4 0.3 --std 0.2 0.25 0.3 --yaml`" in out.splitlines()[1]
    section = composed(tmp_path, out)["data"]
    assert (section["mean"], section["std"]) == ([0.5, 0.4, 0.3], [0.2, 0.25, 0.3])  # type: ignore[index]
    assert titles == ["measuring sizes of my_photos"]


def test_a_timm_network_keeps_its_own_preprocessing(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import timm

    network = timm.create_model("mobilenetv4_conv_small_035", num_classes=5)
    torch.save(network.state_dict(), tmp_path / "mine.pt")
    source = "timm:mobilenetv4_conv_small_035"
    code, out, err = inspect(
        capsys, source, "--weights", tmp_path / "mine.pt", "--data", photos, "--yaml", "--resolution", 64
    )
    assert (code, err) == (0, "")
    whole = composed(tmp_path, out)
    known, section = timm.get_pretrained_cfg("mobilenetv4_conv_small_035"), whole["data"]
    assert "timm's for mobilenetv4_conv_small_035" in out
    assert "--resolution 64 --yaml`" in out.splitlines()[1]
    for key, value in (("mean", list(known.mean)), ("std", list(known.std)), ("interpolation", known.interpolation)):
        assert section[key] == value  # type: ignore[index]
    assert section["crop"] == known.crop_pct  # type: ignore[index]
    assert whole["model"]["num_classes"] == 5  # type: ignore[index]


def test_a_factory_is_complete_too(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for label, name in enumerate(("fox", "gnu", "hen", "ibis", "jay")):
        (photos / name).mkdir()
        for i in range(3):
            photo(10**4 + 10 * label + i).save(photos / name / f"{i}.png")
    code, out, _ = inspect(capsys, "autotailor.zoo:resnet_digits", "--resolution", 32, "--data", photos, "--yaml")
    assert code == 0
    assert composed(tmp_path, out)["model"]["num_classes"] == 10  # type: ignore[index]
    assert "# the network's\n" in out
    code, out, _ = inspect(capsys, "autotailor.zoo:resnet_digits", "--data", photos, "--yaml")
    assert code == 0
    assert "  # 224 is assumed: --resolution names the network's\n" in out


def test_parts_that_are_there_are_taken(
    model: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for part in ("train", "val"):
        shutil.copytree(photos, tmp_path / "parts" / part)
    out = inspect(capsys, model, "--data", tmp_path / "parts", "--yaml")[1]
    assert "train 50, val 50" in out
    assert "fractions" not in out
    assert composed(tmp_path, out)["data"]["root"] == str(tmp_path / "parts")  # type: ignore[index]


def test_names_that_yaml_or_hydra_would_read_otherwise_stay_names(
    model: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = photos.rename(photos.with_name("a: ${seed} #'1"))
    (odd / "ant").rename(odd / "ant\nmodel: {}")
    code, out, _ = inspect(capsys, model, "--data", odd, "--yaml")
    assert code == 0
    assert composed(tmp_path, out)["data"]["root"] == str(odd)  # type: ignore[index]


@pytest.mark.parametrize("name", ["2024", "1e5", "on", "null", "0x1f", "nan", "1_000"])
def test_folders_whose_names_could_be_other_values_are_read(
    name: str, model: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = inspect(capsys, model, "--data", photos.rename(photos.with_name(name)), "--yaml")
    assert code == 0
    assert composed(tmp_path, out)["data"]["name"] == name  # type: ignore[index]


def test_the_tables_say_what_the_data_are(model: Path, photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = inspect(capsys, model, "--data", photos)
    assert "50 pictures, all of them readable; 5 classes" in out
    assert "0 ant, 1 bee, 2 cat, 3 dog, 4 eel" in out


def test_a_rare_class_is_named_and_others_are_not(
    model: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "rare class" not in inspect(capsys, model, "--data", photos)[1]
    for i in range(3, 10):
        (photos / "dog" / f"{i}.jpg").unlink()
    for i in range(10, 15):
        photo(1000 + i, (60, 48)).save(photos / "ant" / f"{i}.jpg")
    _, out, _ = inspect(capsys, model, "--data", photos)
    assert "Of dog there are 3 pictures, of ant 15:\naccuracy counts pictures and not classes" in out
    _, out, _ = inspect(capsys, model, "--data", photos, "--yaml")
    assert "# Of dog there are 3 pictures, of ant 15:\n# accuracy counts" in out
    composed(tmp_path, out)


def test_pictures_with_transparency_are_counted(
    model: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "transparent" not in inspect(capsys, model, "--data", photos)[1]
    for number, opacity in enumerate((255, 254, 0)):
        picture = photo(2000 + number, (60, 48)).convert("RGBA")
        picture.putalpha(opacity)
        picture.save(photos / "ant" / f"alpha{number}.png")
    photo(2003, (60, 48)).quantize(4).save(photos / "bee" / "palette.png", transparency=0)
    Image.fromarray(np.full((48, 60), 77, np.uint16)).save(photos / "cat" / "deep.png", transparency=77)
    _, out, _ = inspect(capsys, model, "--data", photos)
    assert "\n4 of 55 pictures that were looked at have transparent pixels, which stand over white:\n" in out
    _, out, _ = inspect(capsys, model, "--data", photos, "--yaml")
    assert "# data.background: black, or drop where" in out
    composed(tmp_path, out)


def test_a_background_that_changes_the_networks_answers_is_told_of(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, last = torch.nn.Conv2d(3, 4, 1), torch.nn.Linear(4, 5)
    network = torch.nn.Sequential(first, torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), last)
    for parameter in network.parameters():
        torch.nn.init.zeros_(parameter)
    torch.nn.init.ones_(first.weight)
    torch.nn.init.ones_(last.weight[0])  # ant where bright, bee where dark
    torch.nn.init.constant_(last.bias[1], 4 * 3 * 0.5)
    onnx_ir.save(export_module(network, 32), tmp_path / "bright.onnx")
    for number in range(8):
        Image.new("RGBA", (40, 40), (9, number, 9, 0)).save(photos / "ant" / f"alpha{number}.png")
    how = ("--data", photos, "--mean", 0, 0, 0, "--std", 1, 1, 1)
    for more in ((), ("--yaml",)):
        _, out, _ = inspect(capsys, tmp_path / "bright.onnx", *how, *more)
        assert "right on 100.0 % over white, 0.0 % over" in out
        assert "no other is clearly better" in out.replace("\n# ", " ")


def test_another_number_of_classes_names_both_numbers_and_the_remedy(
    model: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(photos / "ant", photos / "fox")
    code, out, err = inspect(capsys, model, "--data", photos, "--yaml")
    assert (code, out) == (1, "")
    assert re.search(r"has 5 outputs, the data .* have 6 classes \(ant, .*take those of exactly the 5 classes", err)
    shutil.rmtree(photos / "fox")
    out = inspect(capsys, model, "--data", photos, "--yaml")[1]
    shutil.rmtree(photos / "eel")
    with pytest.raises(autotailor.AutoTailorError, match=r"has 5 outputs, the data .* have 4 classes"):
        composed(tmp_path, out)


def test_pictures_without_class_folders_have_no_labels(
    model: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = inspect(capsys, model, "--data", photos / "ant", "--yaml")
    assert (code, err) == (0, "")
    assert "The pictures have no labels" in out
    section = composed(tmp_path, out)["data"]
    assert isinstance(section, dict)
    assert section["labels"] is False
    with pytest.raises(data.DataError, match=r"validation holds a single picture.*data\.fractions"):
        data.load({**section, "workers": 0})
    splits = data.load({**section, "workers": 0, "fractions": [0.6, 0.2, 0.2]})
    assert (splits.labelled, splits.num_classes, len(splits.train), len(splits.test)) == (False, 0, 6, 2)
    _, out, _ = inspect(capsys, model, "--data", photos / "ant")
    assert "10 pictures, all of them readable; without labels." in out


def test_a_table_of_labels_names_the_outputs_and_the_task(
    model: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"{name}/{i}.jpg" for name in CLASSES for i in range(10)]
    rows = [f"{name},{i % 2},{i % 3 // 2},0,1,{int(i < 25)}" for i, name in enumerate(names)]
    table = photos / "tags.csv"
    table.write_text("\n".join(["file,sky,water,people,night,snow", *rows]) + "\n")
    code, out, err = inspect(capsys, model, "--data", table, "--yaml")
    assert (code, err) == (0, "")
    assert "outputs are the table's columns in their order:\n#   0 sky, 1 water, 2 people, 3 night, 4 snow\n" in out
    section = composed(tmp_path, out)["data"]
    assert isinstance(section, dict)
    assert (section["kind"], section["task"], section["table"]) == ("table", "multilabel", "tags.csv")
    splits = data.load({**section, "workers": 0})
    assert (task.of(splits).name, splits.classes[0], len(splits.train)) == ("multilabel", "sky", 40)
    _, out, _ = inspect(capsys, model, "--data", table)
    assert "50 pictures, all of them readable; 5 labels." in out
    table.write_text(table.read_text().replace(",snow", "").replace(",1\n", "\n").replace(",0\n", "\n"))
    _, _, err = inspect(capsys, model, "--data", table)
    assert "has 5 outputs, the data" in err
    assert "have 4 classes (sky, water, people, night)" in err


def test_a_network_that_is_trained_here_needs_labels(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = inspect(capsys, "autotailor.zoo:resnet_digits", "--resolution", 32, "--data", photos / "ant", "--yaml")[1]
    lines = yaml.safe_load((ROOT / "conf" / "model" / "resnet_digits.yaml").read_text())["pretrain"]
    pretrain = yaml.safe_dump({"weights": "pretrain", "pretrain": lines}).replace("\n", "\n  ")
    with pytest.raises(config.ConfigError, match=r"pretrain trains with labels, and data\.labels is false"):
        composed(tmp_path, out.replace("weights: null", "").replace("pretrain: null", "") + "  " + pretrain.rstrip())


def test_other_data_than_the_files_own_are_not_mixed_with_them(
    model: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = inspect(capsys, model, "--data", photos, "--yaml")[1]
    with pytest.raises(config.ConfigError, match=r"mine\.yaml has its own section data"):
        composed(tmp_path, out, "data=imagenet")
    assert composed(tmp_path, out, "data.flip=false")["data"]["flip"] is False  # type: ignore[index]


def test_bad_folders_and_options_are_one_clear_message(
    model: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "one" / "ant").mkdir(parents=True)
    shutil.copy(photos / "ant" / "1.jpg", tmp_path / "one" / "ant")
    (tmp_path / "text" / "ant").mkdir(parents=True)
    (tmp_path / "text" / "ant" / "notes.txt").write_text("no picture")
    for arguments, message in (
        (["--data", tmp_path / "nowhere"], "nowhere does not exist"),
        (["--data", model], "mine.onnx is a file; name the folder"),
        (["--data", tmp_path / "empty"], "has no folders; put images there as CLASS/IMAGE.jpg"),
        (["--data", tmp_path / "one"], "has one class, ant"),
        (["--data", tmp_path / "text"], "every class folder needs at least one picture"),
        (["--data", photos, "--mean", 0.5, 0.5, 0.5], "--mean and --std belong together"),
        (["--data", photos, "--mean", 124, 116, 104, "--std", 58, 57, 57], "divide numbers for pixels up to 255"),
        (["--mean", 0.5, 0.5, 0.5, "--std", 0.2, 0.2, 0.2], "name the pictures with --data"),
    ):
        code, out, err = inspect(capsys, model, "--yaml", *arguments)
        assert (code, out) == (1, "")
        assert message in err
        assert len(err.splitlines()) == 1
    (photos / "ant" / "3.jpg").write_bytes(b"")
    for more in ([], ["--yaml"]):
        code, out, err = inspect(capsys, model, "--data", photos, *more)
        assert code == 1
        assert "3.jpg is empty" in err


def test_masks_are_recognised_and_need_a_map_of_their_classes(tmp_path: Path) -> None:
    root = masked.write_notes(tmp_path / "notes", 12)
    own = read_own_data(root)
    assert (own.kind, own.classes) == ("masks", masked.CLASSES)
    assert own.for_network("mine.onnx", 0, ("map",), ((1, 4, 16, 16),)) is own
    assert class_lines(own) == [
        "# The network's map has the classes of the masks:",
        "#   0 paper, 1 zero, 2 one, 3 seven",
    ]
    assert own.summary()[0].endswith("12 pictures, all of them readable; each has a mask of 4 classes.")
    for shape in ((1, 5, 16, 16), (1, 4)):
        with pytest.raises(
            AgreementError, match=r"returns map \[n, [45].*masks in .* have 4 classes: give a network whose map"
        ):
            own.for_network("mine.onnx", 0, ("map",), (shape,))
    own.verify()
    lines = data_lines(own, Preprocessing((0.5,) * 3, (0.25,) * 3, "given"), own.statistics(32, "sizes"), 32)
    section = yaml.safe_load("\n".join(lines))["data"]
    assert (section["root"], section["crop"], "table" in section) == (str(root), 1.0, False)


def test_boxes_are_recognised_and_their_decoder_is_proposed_by_the_outputs_shapes(tmp_path: Path) -> None:
    root = boxed.write_notes(tmp_path / "notes", 12)
    names = tuple(name for _, name in boxed.DIGITS.values())
    for path in (root, root / "boxes.json"):
        own = read_own_data(path)
        assert (own.kind, own.classes, own.files) == ("coco", names, {"train": "boxes.json"})
    assert own.summary()[0].endswith("12 pictures, all of them readable; with boxes of 3 classes.")
    shapes = {
        "autotailor.task.decoders.centres:centres": ((1, 3, 16, 16), (1, 2, 16, 16), (1, 2, 16, 16)),
        "autotailor.task.decoders.anchors:ssdlite320": ((1, 3234, 4), (1, 3234, 4)),
        "autotailor.task.decoders.anchors:retinanet": ((1, 774, 4), (1, 774, 4)),
        "autotailor.task.decoders.yolo:yolo": ((1, 7, 84),),
        "mine:decode": ((1, 9, 84),),
    }
    for decode, axes in shapes.items():
        assert own.for_network("mine.onnx", 0, ("x",) * len(axes), axes).decode == decode
    own = own.for_network("mine.onnx", 0, ("x",), ((1, 84, 8),))
    lines = data_lines(own, Preprocessing((0.5,) * 3, (0.25,) * 3, "given"), own.statistics(32, "sizes"), 32)
    section = yaml.safe_load("\n".join(lines))["data"]
    assert (section["train"], section["decode"], section["crop"]) == (
        "boxes.json",
        "autotailor.task.decoders.yolo:yolo",
        0,
    )


def test_the_resolution_of_a_network_that_finds_boxes_stays_and_the_file_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, options = boxed.write_notes(tmp_path / "notes", 12), ("--resolution", 64, "--yaml", "--mean", 0, 0, 0)
    options += ("--std", 1, 1, 1)
    code, out, _ = inspect(capsys, "boxed:network", "--data", root, *options)
    assert code == 0
    section = yaml.safe_load(out)
    assert "resolution" not in section["model"]["space"]
    assert section["data"]["train"] == "boxes.json"
    assert "# better than your network is on these. Where that is good enough, list sides" in out
    net = autotailor.compile(boxed.network(), section["model"]["space"], resolution=64)
    assert f"{net.space.num_modifications} modifications" in out
    _, without, _ = inspect(capsys, "boxed:network", "--resolution", 64, "--yaml")
    assert len(yaml.safe_load(without)["space"]["resolution"]) > 1


def test_a_task_that_the_data_do_not_say_is_written_and_needs_data_of_its_kind(tmp_path: Path) -> None:
    table = tmp_path / "faces" / "labels.csv"
    for name in ("old", "young"):
        (tmp_path / "faces" / name).mkdir(parents=True)
        for i in range(10):
            Image.fromarray(np.full((24, 24, 3), 20 * i + len(name), np.uint8)).save(table.parent / name / f"{i}.png")
    table.write_text("file,age\n" + "".join(f"old/{i}.png,{i / 3}\n" for i in range(10)))
    own = read_own_data(table, "regression").for_network("mine.onnx", 1, ("y",), ((1, 1),))
    lines = data_lines(own, Preprocessing((0.5,) * 3, (0.25,) * 3, "given"), own.statistics(32, "sizes"), 32)
    assert yaml.safe_load("\n".join(lines))["data"]["task"] == "regression"
    assert own.summary()[0].endswith("10 pictures, all of them readable; 1 numbers.")
    own = read_own_data(table.parent, "embedding").for_network("mine.onnx", 16, ("v",), ((1, 16),))
    assert class_lines(own)[0] == (
        "# The network's outputs are vectors; the folders are classes, whose pictures should be neighbours:"
    )
    with pytest.raises(AgreementError, match=r"is read as data\.kind folder, and --task regression needs a \.csv file"):
        read_own_data(table.parent, "regression")
    with pytest.raises(AgreementError, match=r"kind masks, and --task embedding needs a folder"):
        read_own_data(masked.write_notes(tmp_path / "notes", 12), "embedding")
