"""Cards of exports: their programs are run as they are written, on a picture, and compared with the network itself."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import autotailor
import networks
import tiny_data
from autotailor import config
from autotailor.data import Preparation, resize
from autotailor.data.pictures.config import PictureConfig
from autotailor.data.pictures.reading import read_picture
from autotailor.data.pictures.stream import centre
from autotailor.data.preparation import Judgement
from autotailor.export import Deployable, export, polished
from autotailor.profiling import DeviceConfig, open_runtime
from autotailor.reporting import ReportError, write_card

ROOT = Path(__file__).parents[4]
PICTURES = PictureConfig("photos", 32, mean=(0.4, 0.5, 0.6), std=(0.2, 0.25, 0.3), crop=0.875, interpolation="bicubic")
Rows = dict[str, dict[str, Any]]
ROW = {
    "latency_ms_expected": 1.5,
    "latency_ms_measured": 1.625,
    "latency_ms_standard_error": 0.0125,
    "budget_ms": 1.6,
    "budget_met": False,
    "measured_at": "2026-01-02T03:04:05+00:00",
    "accuracy_inherited": 90.0,
    "accuracy_measured": 91.25,
    "accuracy_standard_error": 0.5,
    "parameters_m": 0.25,
    "macs_m": 12.5,
    "size_mb": 1.0,
    "memory_mb_measured": float("nan"),
}


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Deployable:
    """The smallest SubNet of somebody's ONNX file, for smaller images than the data have."""
    path = tmp_path_factory.mktemp("theirs") / "theirs.onnx"
    torch.onnx.export(
        networks.make("resnet"), (torch.randn(1, 3, 32, 32),), str(path), dynamo=False, opset_version=17,
        input_names=["pixel values"], output_names=["scores"], do_constant_folding=False,
    )  # fmt: skip
    net = autotailor.compile(path, networks.SPACES["resnet"])
    subnet = net.smallest()
    return polished(net, subnet, net.slice(subnet))


@pytest.fixture(scope="module")
def rows(network: Deployable) -> Rows:
    """``summary.csv``."""
    row = ROW | {"subnet": network.subnet.id}
    return {"budget_01": row, "original": row | {"subnet": "", "latency_ms_measured": 3.25, "budget_ms": float("nan")}}


@pytest.fixture(scope="module")
def folder(network: Deployable, rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The export with its card and a picture."""
    folder = tmp_path_factory.mktemp("exports") / "budget_01"
    runtime = open_runtime(DeviceConfig.from_section({"name": "test"}))
    how = (PICTURES.mean, PICTURES.std, PICTURES.crop, PICTURES.interpolation)
    preparation = Preparation(32, *how, classes=("ca`t", "do\ng", *"cde"))
    export(network, folder, tiny_data.splits().test, runtime, preparation=preparation)
    write_card(folder, "budget_01", configuration(), rows)
    colours = np.random.default_rng(0).integers(0, 256, (5, 6, 3), dtype=np.uint8)
    Image.fromarray(colours).resize((70, 55), Image.Resampling.BICUBIC).save(folder / "picture.png")
    return folder


def test_the_card_names_the_outputs_in_their_order(folder: Path) -> None:
    assert "in this order `cat`, `do g`, `c`, `d`, `e`." in (folder / "README.md").read_text(encoding="utf-8")


def test_the_card_calls_network_and_device_as_the_runs_folder_does(folder: Path, rows: Rows, tmp_path: Path) -> None:
    write_card(folder, "budget_01", configuration(), rows, path=tmp_path / "card.md", pair=("mine", "board"))
    card = (tmp_path / "card.md").read_text(encoding="utf-8")
    assert "# budget_01: mine for board" in card
    assert "`resnet_digits`" not in card
    assert "`host`" not in card


def test_the_card_counts_pictures_with_transparency_and_warns_where_their_background_matters(
    folder: Path, rows: Rows, tmp_path: Path
) -> None:
    assert "transparent pixels." not in (folder / "README.md").read_text(encoding="utf-8")
    shutil.copytree(folder, tmp_path / "budget_01")
    subnet = json.loads((folder / "subnet.json").read_text())
    subnet["transparency"] = asdict(Judgement(176, 120, {"white": 65.3, "black": 77.3}, differs=True, better="black"))
    (tmp_path / "budget_01" / "subnet.json").write_text(json.dumps(subnet))
    write_card(tmp_path / "budget_01", "budget_01", configuration(), rows)
    card = (tmp_path / "budget_01" / "README.md").read_text(encoding="utf-8")
    assert "over white. 120 of 176 test pictures that were looked at have transparent pixels. **On pictures" in card
    assert "right on 65.3 % over white, 77.3 % over black: set data.background to" in card


def configuration(*overrides: str) -> dict[str, Any]:
    return config.compose(ROOT / "conf", "resnet_digits", "host", [*overrides])


def programs(folder: Path, language: str) -> list[str]:
    """The programs of a card, as they are written."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (folder / "README.md").read_text(), re.DOTALL | re.MULTILINE)


def transparent(colours: Image.Image) -> Image.Image:
    """The picture with an upper half that is transparent, and black where it is."""
    pixels = np.asarray(colours.convert("RGBA")).copy()
    pixels[: len(pixels) // 2] = 0
    return Image.fromarray(pixels)


def save(kind: str, picture: Path) -> None:
    """Puts a picture of some kind in the place of one in RGB."""
    colours = Image.open(picture).convert("RGB")
    colours.load()
    if kind == "palette":
        paletted = colours.quantize(16)
        paletted.save(picture, transparency=int(np.asarray(paletted)[0, 0]))
    elif kind == "sixteen bits":
        deep = np.asarray(colours.convert("L")).astype(np.uint16) * 256 + 3
        Image.fromarray(deep).save(picture)
    elif kind == "turned":
        exif = Image.Exif()
        exif[0x0112] = 6
        colours.save(picture, exif=exif)
    else:
        {"alpha": transparent, "grey": lambda image: image.convert("L")}[kind](colours).save(picture)


@pytest.mark.parametrize("kind", ["alpha", "palette", "sixteen bits", "grey", "turned"])
def test_the_cards_program_reads_a_picture_as_the_run_does(kind: str, folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "picture.png", tmp_path / "picture.png")
    save(kind, tmp_path / "picture.png")
    names: dict[str, Any] = {}
    exec(compile(programs(folder, "python")[0], "prepare.py", "exec"), names)
    found = names["opened"](tmp_path / "picture.png")
    wanted = read_picture((tmp_path / "picture.png").read_bytes())
    assert np.array_equal(np.asarray(found), np.asarray(wanted))


@pytest.mark.parametrize("kind", ["alpha", "palette"])
@pytest.mark.parametrize("background", ["black", "drop"])
def test_the_cards_program_has_the_background_of_the_run(
    background: str, kind: str, folder: Path, rows: Rows, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "budget_01")
    subnet = json.loads((folder / "subnet.json").read_text())
    subnet["preparation"]["background"] = background
    (tmp_path / "budget_01" / "subnet.json").write_text(json.dumps(subnet))
    write_card(tmp_path / "budget_01", "budget_01", configuration(), rows)
    save(kind, tmp_path / "budget_01" / "picture.png")
    names: dict[str, Any] = {}
    exec(compile(programs(tmp_path / "budget_01", "python")[0], "prepare.py", "exec"), names)
    said = {"black": "What is transparent stands over black.", "drop": "Transparent pixels keep their stored colours."}
    assert said[background] in (tmp_path / "budget_01" / "README.md").read_text()
    content = (tmp_path / "budget_01" / "picture.png").read_bytes()
    found = np.asarray(names["opened"](tmp_path / "budget_01" / "picture.png"))
    assert np.array_equal(found, np.asarray(read_picture(content, background)))
    assert not np.array_equal(found, np.asarray(read_picture(content)))


def expected(network: Deployable, folder: Path) -> Any:
    """What the SubNet computes of the picture, prepared as validation pictures are."""
    pixels = centre(PICTURES, Image.open(folder / "picture.png")).unsqueeze(0)
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (PICTURES.mean, PICTURES.std))
    with torch.no_grad():
        return network.reference(resize((pixels - mean) / std, 20)).numpy()[0]


def assert_prints(printed: str, wanted: Any) -> None:
    """The picture is rounded to 8 bits before it is scaled down, and therefore the outputs differ a little."""
    found = np.array(json.loads(printed.splitlines()[0]))
    np.testing.assert_allclose(found, wanted, atol=0.01 * np.abs(wanted).max())
    assert printed.splitlines()[1] == f"answer: {wanted.argmax()}"


@pytest.mark.parametrize(("number", "library"), [(1, "onnxruntime"), (2, "torch"), (3, "ncnn")])
def test_a_program_of_the_card_answers_as_the_network_does(
    number: int, library: str, network: Deployable, folder: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    prepare, *others = programs(folder, "python")
    (folder / "prepare.py").write_text(prepare)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "prepare", raising=False)
    assert f"import {library}" in others[number - 1]
    exec(compile(others[number - 1], library, "exec"), {})
    assert_prints(capsys.readouterr().out, expected(network, folder))


def test_the_program_in_cpp_prepares_and_names_as_the_others_do(folder: Path) -> None:
    """The sweep below compiles it."""
    (program,) = programs(folder, "cpp")
    assert "side = 20;" in program
    assert "mean[3] = {0.4, 0.5, 0.6};" in program
    assert 'extractor.input("pixel_values", input)' in program
    assert 'extractor.extract("scores", output)' in program


@pytest.mark.sweep
def test_the_program_in_cpp_answers_as_the_network_does(network: Deployable, folder: Path, tmp_path: Path) -> None:
    """Compiled with the ncnn of ``make runner``, whose build takes minutes where it is not there."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is missing: apt-get install g++")
    sys.path.insert(0, str(ROOT / "src" / "runner"))
    import build

    sys.path.pop(0)
    library = build.BUILD / "host" / "ncnn" / "src" / "libncnn.a"
    if not library.exists():
        build.build("host")
    includes = [build.ncnn_source() / "src", library.parent]
    (program,) = programs(folder, "cpp")
    (tmp_path / "classify.cpp").write_text(program)
    command = [
        "g++",
        "-O2",
        "-std=c++17",
        "classify.cpp",
        *(f"-I{path}" for path in includes),
        str(library),
        "-fopenmp",
    ]
    subprocess.run([*command, "-o", "classify"], cwd=tmp_path, check=True)
    scope: dict[str, Any] = {}
    exec(compile(programs(folder, "python")[0], "prepare", "exec"), scope)
    (tmp_path / "picture.rgb").write_bytes(scope["picture"](folder / "picture.png").tobytes())
    done = subprocess.run(
        [tmp_path / "classify", tmp_path / "picture.rgb"], cwd=folder, capture_output=True, text=True, check=True
    )
    assert_prints(done.stdout, expected(network, folder))


def test_the_card_says_how_large_how_fast_and_how_right(folder: Path) -> None:
    card = (folder / "README.md").read_text()
    assert "# budget_01: resnet_digits for host" in card
    assert "a budget of 1.6 ms. The budget is missed" in card
    assert "| latency, measured (ms) | 1.625 ± 0.013 | 3.25 ± 0.013 |" in card
    assert "| accuracy, measured (%) | 91.25 ± 0.5 | 91.25 ± 0.5 |" in card
    assert "Measured at 2026-01-02T03:04:05+00:00" in card
    assert "2 rounds of 1 second each" in card
    assert "`pixel values` | `scores` | onnxruntime" in card
    assert "polished" in card
    assert "peak memory" not in card, "it was not measured"
    assert "none to keep: the run trained all weights itself" in card
    assert "| None" not in card
    assert "| nan" not in card


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["export.budgets=['50%','30/s']"], "(asked for: 50%)"),
        (["data.name=photos", "model.weights=null"], "with its own weights"),
        (["data.name=photos", "model.weights=null"], "weights saw these pictures, both networks are less accurate on"),
        (["model.weights=seeds/theirs.pt"], "the weights of the file `theirs.pt`"),
    ],
)
def test_the_card_says_what_the_configuration_says(
    overrides: list[str], said: str, rows: Rows, folder: Path, tmp_path: Path
) -> None:
    write_card(folder, "budget_01", configuration(*overrides), rows, path=tmp_path / "README.md")
    assert said in (tmp_path / "README.md").read_text()


def test_without_a_device_the_card_has_no_latency(rows: Rows, folder: Path, tmp_path: Path) -> None:
    counted = config.compose(ROOT / "conf", "resnet_digits", "macs", [])
    counts = {name: {key: v for key, v in row.items() if "latency" not in key and "budget" not in key}
            for name, row in rows.items()}  # fmt: skip
    write_card(folder, "budget_01", counted, counts, path=tmp_path / "README.md")
    card = (tmp_path / "README.md").read_text()
    assert "No latency was measured" in card
    assert "and a budget of MACs, one of 3 that are spread evenly from the cheapest SubNet to the largest." in card
    assert "| latency" not in card


def test_pictures_without_labels_give_agreement(rows: Rows, folder: Path, tmp_path: Path) -> None:
    unlabelled = configuration()
    unlabelled["data"]["labels"] = False
    write_card(folder, "budget_01", unlabelled, rows, path=tmp_path / "README.md")
    card = (tmp_path / "README.md").read_text()
    assert "| agreement, measured (%) | 91.25" in card
    assert "the same answer as the original network" in card


def test_an_export_that_answers_budgets_with_exits_says_what_they_cost(
    rows: Rows, folder: Path, tmp_path: Path
) -> None:
    own = {"name": "budget_01", "thresholds": {"stage1": None, "stage2": 0.875}, "expected": 0.75, "worst": 1.7}
    own |= {"accuracy": 90.5, "accuracy_error": 1.25}
    budgets = {"50 %": {"with": own}, "60 %": {"with": own | {"name": "largest"}}, "20 %": {"with": None}}
    exits = {"unit": "ms", "budgets": budgets | {"90 %": {"with": own | {"thresholds": {}}}}}
    write_card(folder, "budget_01", configuration(), rows, path=tmp_path / "README.md", exits=exits)
    card = (tmp_path / "README.md").read_text()
    assert "| 50 % | stage2 0.875 | 0.75 | 1.7 | 90.5 ± 1.2 |\n\n## How it was measured" in card
    assert not {"| 60 %", "| 20 %", "| 90 %"} & {line[:6] for line in card.splitlines()}
    assert "early exits" not in (folder / "README.md").read_text()


def test_an_export_of_an_earlier_version_is_refused(rows: Rows, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "old")
    subnet = json.loads((tmp_path / "old" / "subnet.json").read_text())
    del subnet["preparation"]
    (tmp_path / "old" / "subnet.json").write_text(json.dumps(subnet))
    with pytest.raises(ReportError, match="run the rule export again"):
        write_card(tmp_path / "old", "budget_01", configuration(), rows)


def test_numbers_of_another_subnet_are_refused(rows: Rows, folder: Path) -> None:
    other = rows | {"budget_01": rows["budget_01"] | {"subnet": "0123456789ab"}}
    with pytest.raises(ReportError, match=r"is of SubNet 0123456789ab, and .* run the rule measure again"):
        write_card(folder, "budget_01", configuration(), other)
