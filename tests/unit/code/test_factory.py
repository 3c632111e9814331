"""The code of the workflow's rules, held against what a real interpreter imports."""

import ast
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from autotailor.code import rule_code, rule_modules
from autotailor.code.factory import OBSERVERS
from autotailor.code.references import references
from autotailor.lazy import homes

ROOT = Path(__file__).parents[3]
SCRIPTS = ROOT / "workflow" / "scripts"
RULES = sorted(path.stem for path in SCRIPTS.glob("*.py") if path.stem != "stage")


CODE = rule_code(ROOT)


@cache
def modules(rule: str) -> dict[str, str]:
    return rule_modules(CODE, ROOT, rule)


def rooms(rule: str) -> set[str]:
    """Subpackages that a rule's code is in."""
    return {name.split(".")[1] for name in modules(rule) if name.startswith("autotailor.")}


@pytest.mark.parametrize("rule", ["finetune", "sensitivity", "pretrain"])
def test_training_does_not_depend_on_what_it_does_not_import(rule: str) -> None:
    assert not rooms(rule) & {"profiling", "search", "reporting", "enumeration", "export", "tracking", "config"}


@pytest.mark.parametrize(
    ("rule", "module"),
    [
        ("enumerate", "autotailor.profiling.runtimes.ncnn.fusion"),
        ("search", "autotailor.search.choice"),
        ("measure", "autotailor.reporting.contributors"),
        ("polish", "autotailor.finetuning.polishing.lockstep"),
        ("export", "autotailor.finetuning.polishing.files"),
        ("measure", "autotailor.finetuning.polishing.files"),
        ("compare", "autotailor.statistics"),
        ("report", "autotailor.profiling.networks.promise"),
        ("report", "autotailor/reporting/templates/report.css"),
        ("pretrain", "autotailor.compiler.sources.network"),
        ("finetune", "autotailor.finetuning.sampling.sandwich"),
        ("finetune", "autotailor.data.datasets.digits"),
        ("finetune", "autotailor.ir.operators.windows.conv"),
        ("finetune", "autotailor.ir.blocks.templates.bottleneck"),
        ("finetune", "stage"),
        ("profile", "autotailor.profiling.transports.adb.transport"),
        ("profile", "autotailor.profiling.runtimes.ncnn.runner"),
        ("profile", "autotailor.profiling.runtimes.ncnn.layers.convolutions"),
    ],
)
def test_a_rule_depends_on_what_it_uses(rule: str, module: str) -> None:
    assert module in modules(rule)


PROGRAM = """
import ast, json, os, pathlib, sys
import numpy, pandas, scipy.stats, torch, onnx, onnx_ir, onnxruntime, psutil, rich.progress, networkx, jinja2
import matplotlib.figure
sys.path.insert(0, sys.argv[1])
for rule in sys.argv[2:]:
    if os.fork():
        assert os.wait()[1] == 0, rule
        continue
    tree = ast.parse(pathlib.Path(sys.argv[1], f"{rule}.py").read_text())
    known = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            exec(compile(ast.Module([node], []), rule, "exec"), known)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
            getattr(known[node.value.id], node.attr, None)
    for registry in ("data.registry", "finetuning.sampling"):
        if module := sys.modules.get(f"autotailor.{registry}"):
            module.names()
    if block := sys.modules.get("autotailor.ir.blocks.block"):
        block.templates()
    loaded = [n for n, m in sys.modules.items() if n.startswith("autotailor.") and getattr(m, "__file__", None)]
    print(json.dumps([rule, loaded]), flush=True)
    os._exit(0)
"""


def test_all_that_a_real_interpreter_imports_is_in_the_closure() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(SCRIPTS), *RULES], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found = dict(json.loads(line) for line in done.stdout.splitlines())
    assert sorted(found) == RULES
    for rule, loaded in found.items():
        counted = [name for name in loaded if not name.startswith(OBSERVERS)]
        assert len(counted) > 3
        assert set(counted) <= set(modules(rule)), rule


def test_lazy_names_live_where_python_imports_them_from() -> None:
    lazy = 0
    for path in (ROOT / "src" / "autotailor").rglob("__init__.py"):
        found = references(ast.parse(path.read_text()))
        if found.is_lazy:
            lazy += 1
            assert found.lazy == {name: ".".join(home) for name, home in homes(path).items()}, path
    assert lazy >= 8
