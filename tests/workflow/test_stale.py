"""What a change of code or content reruns, in real Snakemake, dry: all of it that counts, and no more."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from autotailor import code
from forked_snakemake import Done, Snakemake

ROOT = Path(__file__).parents[2]


def planned(done: Done) -> set[str]:
    """Rules that a dry run would execute."""
    assert done.code == 0, done.said
    return {rule for rule, _ in re.findall(r"^(\w+)\s+(\d+)$", done.said, re.MULTILINE)} - {"total", "default"}


def record(results: Path, checkout: Path) -> None:
    """What rules write about their code."""
    modules = code.rule_code(checkout)
    for folder in (results, results / "host"):
        for path in (folder / "provenance").glob("*.json"):
            found = code.rule_modules(modules, checkout, path.stem)
            path.write_text(json.dumps({"schema_version": 1, "rule": path.stem, "code": found, "outputs": {}}))


@pytest.fixture(scope="module")
def snakemake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snakemake]:
    """A checkout in which every rule seems to have run."""
    checkout = tmp_path_factory.mktemp("checkout")
    for name in ("src", "workflow", "conf"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "Snakefile", checkout)
    (checkout / "profiles").symlink_to("workflow/profiles")
    with Snakemake(checkout, tmp_path_factory.mktemp("said")) as run:
        finish(run)
        record(checkout / "results" / "resnet_digits", checkout)
        yield run


def finish(run: Snakemake, config: Sequence[str] = ()) -> None:
    """Every rule seems to have run."""
    for line in run("--summary", config=config).said.splitlines():
        if line.startswith("results/"):
            path = run.folder / line.split("\t")[0]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(line)
    touched = run("--touch", "--forceall", "--no-hooks", config=config)
    assert touched.code == 0, touched.said
    assert planned(run("-n", config=config)) == set()


class Edited:
    """A file of the checkout that says something else for a while; more, where nothing is replaced."""

    def __init__(self, path: Path, old: str = "", new: str = "ADDED = 1\n") -> None:
        self.path, self.old, self.new = path, old, new

    def __enter__(self) -> None:
        self.text = self.path.read_text()
        assert self.old in self.text
        self.path.write_text(self.text.replace(self.old, self.new, 1) if self.old else self.text + self.new)

    def __exit__(self, *_: object) -> None:
        self.path.write_text(self.text)


def test_docstrings_comments_and_dates_rerun_nothing(snakemake: Snakemake) -> None:
    source = snakemake.folder / "src" / "autotailor"
    for path in (source / "ir" / "supernet.py", snakemake.folder / "workflow" / "scripts" / "finetune.py"):
        with Edited(path, '"""', '"""Says more. '):
            assert planned(snakemake("-n")) == set()


TRAINED = {"finetune", "sensitivity", "validate_accuracy", "search", "confirm", "polish", "export", "measure", "report"}


def test_changed_code_is_named_and_can_be_kept(snakemake: Snakemake) -> None:
    schedule = snakemake.folder / "src" / "autotailor" / "finetuning" / "training" / "schedule.py"
    with Edited(schedule, "0.5 * (1 + math.cos", "0.6 * (1 + math.cos"):
        done = snakemake("-n")
        assert planned(done) >= TRAINED | {"pretrain"}
        assert "\n  finetune: autotailor.finetuning.training.schedule\n" in done.said
        assert "add keep=" in done.said
        kept = planned(snakemake("-n", config=["keep=[finetune,sensitivity]"]))
        assert not kept & {"pretrain", "compile", "finetune", "sensitivity", "profile"}
        assert "report" in kept
        refused = snakemake("-n", config=["keep=finetun"])
        assert refused.code == 1
        assert "unknown keep 'finetun'; known are pretrain, distil, finetune" in refused.said


def test_the_training_of_a_pool_runs_again_only_where_a_pool_is_asked_for(snakemake: Snakemake) -> None:
    checkout = snakemake.folder
    path = checkout / "results" / "resnet_digits" / "host" / "provenance" / "train_pool.json"
    found = code.rule_modules(code.rule_code(checkout), checkout, "train_pool")
    path.write_text(json.dumps({"schema_version": 1, "rule": "train_pool", "code": found, "outputs": {}}))
    with Edited(checkout / "src" / "autotailor" / "pool" / "members.py"):
        done = snakemake("-n")
        assert planned(done) == set()
        assert "\n  train_pool (where a pool is asked for): autotailor.pool.members\n" in done.said
    schedule = checkout / "src" / "autotailor" / "finetuning" / "training" / "schedule.py"
    with Edited(schedule, "0.5 * (1 + math.cos", "0.6 * (1 + math.cos"):
        assert "add keep=polish" in snakemake("-n").said, "what the run makes is not offered to be kept"
    path.unlink()


def test_code_of_the_compiler_reruns_training_unless_it_is_kept(snakemake: Snakemake) -> None:
    """Kept is what a rule made: the rules before it are not run for their code either."""
    parser = snakemake.folder / "src" / "autotailor" / "compiler" / "parser.py"
    with Edited(parser):
        done = snakemake("-n")
        assert planned(done) >= TRAINED
        assert "\n  finetune: autotailor.compiler.parser\n" in done.said
        assert not planned(snakemake("-n", config=["keep=finetune"])) & {"compile", "finetune", "sensitivity"}


def test_changed_fusion_rules_rerun_what_reads_them(snakemake: Snakemake) -> None:
    fusion = snakemake.folder / "src" / "autotailor" / "profiling" / "runtimes" / "ncnn" / "fusion.py"
    with Edited(fusion):
        found = planned(snakemake("-n"))
    assert found >= {"enumerate", "profile", "validate", "search"}
    assert not found & {"pretrain", "compile", "finetune", "sensitivity"}


def test_a_template_reruns_the_report_only(snakemake: Snakemake) -> None:
    with Edited(snakemake.folder / "src" / "autotailor" / "reporting" / "templates" / "report.css", "{", "{ "):
        found = planned(snakemake("-n"))
    assert "report" in found
    assert not found & {"finetune", "sensitivity", "profile", "validate"}


AFTER_COMPILE = TRAINED | {"compile", "enumerate", "profile", "validate"}
ARRIVED = {"moments"}
"""The rule of weights that arrive trained, which reads pictures."""
MODEL = """
name: {name}
source: {source}
weights: {weights}
resolution: 8
num_classes: 2
pretrain: null
space: {{}}
"""


def write_onnx(path: Path, value: float) -> None:
    """A network whose weights lie beside it, as dynamo writes it."""
    weight = numpy_helper.from_array(np.full((2, 192), value, np.float32), "weight")
    nodes = [helper.make_node("Flatten", ["input"], ["flat"]), helper.make_node("Gemm", ["flat", "weight"], ["output"])]
    nodes[1].attribute.append(helper.make_attribute("transB", 1))
    shapes = [("input", [1, 3, 8, 8]), ("output", [1, 2])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes]
    model = helper.make_model(helper.make_graph(nodes, "mine", ends[:1], ends[1:], [weight]))
    path.parent.mkdir(exist_ok=True)
    (path.parent / "weights.bin").unlink(missing_ok=True)  # onnx appends to it
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)


def write_pictures(folder: Path) -> None:
    for part in ("train", "val"):
        for number in range(8):
            path = folder / part / "ab"[number % 2] / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            noise = np.random.default_rng([number, len(part)]).integers(0, 256, (8, 8, 3))
            Image.fromarray(noise.astype(np.uint8)).save(path)


def add_model(folder: Path, name: str, source: str, weights: str = "null") -> list[str]:
    """Own network and own pictures; answers what ``--config`` takes."""
    (folder / "conf" / "model" / f"{name}.yaml").write_text(MODEL.format(name=name, source=source, weights=weights))
    data = "name: photos\nkind: folder\nroot: photos\nresolution: 8\n"
    (folder / "conf" / "data" / "photos.yaml").write_text(data)
    return [f"model={name}", "overrides=[data=photos]"]


def test_a_changed_model_file_or_picture_reruns_what_depends_on_it(snakemake: Snakemake) -> None:
    folder = snakemake.folder
    write_onnx(folder / "models" / "mine.onnx", 1.0)
    write_pictures(folder / "photos")
    config = add_model(folder, "mine", "models/mine.onnx")
    finish(snakemake, config)
    graph = (folder / "models" / "mine.onnx").read_bytes()
    write_onnx(folder / "models" / "mine.onnx", 2.0)
    assert (folder / "models" / "mine.onnx").read_bytes() == graph  # the weights beside it have changed
    assert planned(snakemake("-n", config=config)) == AFTER_COMPILE | ARRIVED
    write_onnx(folder / "models" / "mine.onnx", 1.0)
    (folder / "photos" / "train" / "a" / "0.png").touch()
    assert planned(snakemake("-n", config=config)) == set()
    Image.new("RGB", (8, 8)).save(folder / "photos" / "train" / "a" / "0.png")
    assert planned(snakemake("-n", config=config)) == TRAINED | ARRIVED


def test_a_changed_test_picture_reruns_what_looks_at_test_pictures_and_no_training(snakemake: Snakemake) -> None:
    folder = snakemake.folder
    write_onnx(folder / "models" / "tested.onnx", 1.0)
    write_pictures(folder / "photos")
    for name in "ab":
        (folder / "photos" / "test" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(folder / "photos" / "test" / name / "0.png")
    config = add_model(folder, "tested", "models/tested.onnx")
    finish(snakemake, config)
    Image.new("RGB", (8, 8), "red").save(folder / "photos" / "test" / "a" / "0.png")
    found = planned(snakemake("-n", config=config))
    shutil.rmtree(folder / "photos" / "test")
    assert found == {"validate_accuracy", "export", "measure", "report"}


def test_changed_code_of_the_network_or_changed_weights_rerun_what_depends_on_them(snakemake: Snakemake) -> None:
    folder = snakemake.folder
    write_pictures(folder / "photos")
    (folder / "parts.py").write_text("WIDTH = 3\n")
    (folder / "mynet.py").write_text("from parts import WIDTH\ndef make(): ...\n")
    (folder / "weights.pt").write_bytes(b"1")
    config = add_model(folder, "made", "mynet:make", "weights.pt")
    finish(snakemake, config)
    with Edited(folder / "mynet.py", "make(): ...", 'make():\n    """A network."""\n    ...'):
        assert planned(snakemake("-n", config=config)) == set()
    with Edited(folder / "parts.py", "3", "4"):
        assert planned(snakemake("-n", config=config)) == AFTER_COMPILE | ARRIVED
    (folder / "weights.pt").write_bytes(b"2")
    assert planned(snakemake("-n", config=config)) == AFTER_COMPILE | ARRIVED


def test_another_version_of_the_runtime_measures_anew(snakemake: Snakemake, tmp_path: Path) -> None:
    (tmp_path / "ncnn-99.dist-info").mkdir()
    (tmp_path / "ncnn-99.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: ncnn\nVersion: 99\n")
    found = planned(snakemake("-n", path=tmp_path))
    assert found >= {"profile", "validate", "measure", "export"}
    assert not found & {"pretrain", "compile", "finetune", "sensitivity"}


def test_a_run_with_nothing_to_do_names_results_that_were_changed(snakemake: Snakemake) -> None:
    record = snakemake.folder / "results" / "resnet_digits" / "host" / "provenance" / "measure.json"
    text, dates = record.read_text(), (record.stat().st_atime_ns, record.stat().st_mtime_ns)
    record.write_text(json.dumps(json.loads(text) | {"outputs": {"summary.csv": "0" * 64}}))
    os.utime(record, ns=dates)
    program = str(Path(sys.executable).with_name("snakemake"))
    done = subprocess.run(
        [program, "--cores", "1"], cwd=snakemake.folder, capture_output=True, text=True, timeout=240, check=False
    )
    record.write_text(text)
    os.utime(record, ns=dates)
    assert done.returncode == 0, done.stderr
    assert "Nothing to be done" in done.stderr
    assert "summary.csv of rule measure is not what the rule wrote" in done.stderr
