"""Compiled networks: the same logits, the same parameters, and a clear error where nothing can be compiled."""

from functools import partial

import pytest
import torch
from torch import nn

from autotailor.compute.compilation import CompilationError, check_compiler, compiled

CPU = torch.device("cpu")


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.sweep)])
def test_a_compiled_network_is_the_same_network(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    images, fast = torch.rand(2, 3, 8, 8), compiled(network)
    torch.testing.assert_close(fast(images), network(images), rtol=1e-4, atol=1e-5)
    fast(images).sum().backward()
    assert network[0].weight.grad is not None
    check_compiler(CPU, "polish.compile")
    network.eval()
    torch.testing.assert_close(fast(images), network(images), rtol=1e-4, atol=1e-5)


def test_a_machine_that_cannot_compile_is_told_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("no compiler works\nand more")

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=refuse))
    says = r"on cpu of this machine, for which it needs a C\+\+ compiler .*; .* or set polish\.compile to false"
    with pytest.raises(CompilationError, match=says):
        check_compiler(CPU, "polish.compile")
