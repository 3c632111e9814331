"""The rule ``compile`` refuses what no training can mend, before it writes anything."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

WRONG_RULE = """
import torch
from torch import nn

from autotailor.ir.operators.pointwise.elementwise import ElementwiseRule
from autotailor.ir.operators.rule import register


@register
class AtanRule(ElementwiseRule):
    kinds = ("Atan",)

    def call(self, node, arguments):
        return 1.1 * torch.atan(arguments[0])


class Atan(nn.Module):
    def forward(self, x):
        return torch.atan(x)


def make():
    stem, block = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
    return nn.Sequential(stem, Atan(), block, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
"""


def refused(folder: Path, *overrides: str) -> str:
    """What the rule says on the console, which must fail and write nothing."""
    arguments = ["--config", f"overrides=[{','.join(('model.weights=null', *overrides))}]", "--run"]
    command = [sys.executable, str(ROOT / "workflow" / "by_hand.py"), "compile", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode != 0, done.stdout
    assert not [path for path in (folder / "results" / "resnet_digits").rglob("*") if path.is_file()]
    return done.stderr


def test_a_space_without_variables_is_refused(tmp_path: Path) -> None:
    assert "network resnet_digits: nothing of it can change" in refused(tmp_path, "model.space.skip=['*']")


def test_an_operator_rule_of_ones_own_that_computes_other_numbers_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(WRONG_RULE)
    said = refused(tmp_path, "model.source=mine:make", "model.space.blocks=null")
    assert "computes other numbers in PyTorch than in ONNX Runtime" in said
    assert "correct `call` of the rule for Atan" in said
