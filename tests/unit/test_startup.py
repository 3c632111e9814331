"""What commands, packages and rules import before they need it; every import of these costs the user seconds."""

import ast
import functools
import importlib
import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
import torch

import autotailor
import autotailor.search
import networks

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(path.parent.name for path in (ROOT / "src" / "autotailor").glob("*/__init__.py"))
RULES = sorted(path.stem for path in (ROOT / "workflow" / "scripts").glob("*.py") if path.stem != "stage")
COMMANDS = ("new", "run", "inspect", "doctor", "runner", "lut", "predict", "why", "front", "export", "runtime")
HEAVY = (
    "IPython",
    "PIL",
    "adb_shell",
    "asyncssh",
    "datasets",
    "dvc",
    "jinja2",
    "matplotlib.pyplot",
    "mlflow",
    "ncnn",
    "onnx2torch",
    "onnxruntime",
    "pnnx",
    "pymoo",
    "scipy.integrate",
    "scipy.linalg",
    "scipy.stats",
    "sklearn",
    "sqlalchemy",
    "timm",
    "torch._dynamo",
    "torchvision",
    "transformers",
    "webdataset",
)
"""What nothing imports by being imported; PyTorch and pandas are what most rules work with."""

PROBE = """
import contextlib, io, json, os, sys
exec(sys.argv[1])
contents = sys.argv[2:]
for content in contents:
    pid = os.fork()
    if pid == 0:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(content, {"__name__": "probe"})
        print(json.dumps([content, sorted(sys.modules)]), flush=True)
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        sys.exit(content)
"""


DETERMINISTIC = """
from autotailor.accuracy.determinism import deterministic
with deterministic(1):
    pass
"""

DIGITS = "from autotailor import data; data.load({'name': 'digits', 'train_images': 100, 'evaluation_images': 10})"


@functools.cache
def imported_by(*programs: str, first: str = "") -> dict[str, frozenset[str]]:
    """Modules that each program has imported at its end; each runs in a fork of a process that has run ``first``."""
    done = subprocess.run([sys.executable, "-c", PROBE, first, *programs], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {program: frozenset(modules) for program, modules in map(json.loads, done.stdout.splitlines())}


def command(*arguments: str) -> str:
    """A program that runs one command of autotailor."""
    return (
        f"from autotailor.__main__ import main\ntry:\n    main({list(arguments)!r})\n"
        "except SystemExit as end:\n    assert not end.code"
    )


def rule_imports(name: str) -> str:
    """What a rule's script imports before it does anything, the part common to all rules with it."""
    tree = ast.parse((ROOT / "workflow" / "scripts" / f"{name}.py").read_text(encoding="utf-8"))
    lines = [ast.unparse(node) for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return "\n".join([f"import sys; sys.path.insert(0, {str(ROOT / 'workflow' / 'scripts')!r})", *lines])


@pytest.mark.parametrize("arguments", [("--help",), *((name, "--help") for name in COMMANDS)])
def test_help_imports_neither_pytorch_nor_anything_else_that_is_slow(arguments: tuple[str, ...]) -> None:
    (modules,) = imported_by(command(*arguments)).values()
    assert not modules & {*HEAVY, "torch", "numpy", "onnx", "pandas", "hydra", "networkx", "rich.console"}


def test_packages_import_nothing_slow_before_it_is_used() -> None:
    programs = {f"import autotailor.{name}": name for name in PACKAGES}
    found = {programs[code]: sorted(modules & set(HEAVY)) for code, modules in imported_by(*programs).items()}
    assert found == {name: [] for name in PACKAGES}


def test_only_what_computes_imports_pytorch() -> None:
    programs = {f"import autotailor.{name}": name for name in PACKAGES}
    with_torch = {programs[code] for code, modules in imported_by(*programs).items() if "torch" in modules}
    assert with_torch <= {"compiler", "export", "zoo"}


@pytest.fixture(scope="module")
def of_rules() -> dict[str, frozenset[str]]:
    """Modules that each rule's script has imported, and what computing and reading digits have, in one process."""
    programs = {rule_imports(name): name for name in RULES} | {
        DETERMINISTIC: "any that computes",
        DIGITS: "any that computes with the default pictures",
    }
    return {programs[code]: modules for code, modules in imported_by(*programs, first="import torch").items()}


def test_rules_import_nothing_slow_before_it_is_used(of_rules: dict[str, frozenset[str]]) -> None:
    assert {name: sorted(modules & set(HEAVY)) for name, modules in of_rules.items()} == {name: [] for name in of_rules}
    assert set(RULES) < set(of_rules)


def test_pretraining_needs_no_onnx(of_rules: dict[str, frozenset[str]]) -> None:
    assert not of_rules["pretrain"] & {"onnx", "onnx_ir", "sympy"}


def test_the_report_needs_no_pytorch() -> None:
    figures = "\nfrom autotailor.reporting import derived_columns, html"
    (modules,) = imported_by(rule_imports("report") + figures).values()
    assert "torch" not in modules


def test_a_plan_needs_no_pytorch(tmp_path: Path) -> None:
    arguments = ["-n", "--snakefile", str(ROOT / "Snakefile"), "--directory", str(tmp_path)]
    plans = [
        f"from snakemake.cli import main\ntry:\n    main({[*arguments, '--config', f'device={device}']!r})\n"
        "except SystemExit as end:\n    assert not end.code"
        for device in ("host", "macs")
    ]
    for modules in imported_by(*plans, first="import snakemake.cli").values():
        assert "autotailor.profiling.runtimes.ncnn.runtime" in modules
        assert not modules & {"torch", "onnx"}


def test_inspecting_an_onnx_file_imports_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    net = autotailor.compile(networks.make("resnet"), networks.SPACES["resnet"], name="resnet", resolution=32)
    net.export_onnx(net.largest(), tmp_path / "net.onnx")
    assert onnx.load(str(tmp_path / "net.onnx")).graph.node
    (modules,) = imported_by(command("inspect", str(tmp_path / "net.onnx"))).values()
    assert not modules & {*HEAVY, "pandas", "hydra"}
    assert torch.__name__ in modules


def test_every_lazy_name_is_where_its_package_says() -> None:
    lines = [
        f"import autotailor.{name} as package\nassert all(getattr(package, name) is not None for name in "
        "getattr(package, '__all__', ())), package"
        for name in PACKAGES
    ]
    assert len(imported_by("\n".join(lines))) == 1


def test_a_name_that_a_package_does_not_have_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match=r"autotailor\.search.*frontier"):
        _ = autotailor.search.frontier  # type: ignore[attr-defined]


def test_what_imports_slowly_is_imported_on_first_use() -> None:
    packages = {name: importlib.import_module(f"autotailor.{name}".rstrip(".")) for name in ("", *PACKAGES)}
    lazy = {name for name, package in packages.items() if "__getattr__" in vars(package)}
    assert {"", "data", "finetuning", "profiling", "reporting", "search", "sensitivity"} <= lazy
    assert autotailor.load is autotailor.ir.supernet.load_supernet
    assert {"SearchConfig", "search"} <= set(autotailor.search.__all__) <= set(dir(autotailor.search))
