"""One operator between two layers whose widths change: deduced shapes, and numbers of all forms of a SubNet."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import onnx

from acceptance import checks
from atoms import every_atom
from autotailor.ir.dimensions.dimension import RESOLUTION
from onnx_text import model_of

CHANNELS = SIDE = 12
POOL = "pooled = GlobalAveragePool (%s)  %s = Flatten (pooled)"
HEADS = {2: "numbers = Identity (y)", 3: "numbers = Flatten (y)", 4: POOL % ("y", "numbers")}
"""From the result ``y`` of some rank to a row of numbers."""


@dataclass(frozen=True)
class Case:
    """One operator, or a few.

    Attributes:
        body: ONNX text from the tensor ``t`` to the tensor ``y``.
        weights: initializers by name.
        opset: the first opset that has the operators, 17 or later.
        row: ``t`` is a row ``[1, 12]`` instead of a map ``[1, 12, 12, 12]``.
        static: kinds of the operators that keep their shapes.
        resizes: whether the resolution of the image can change.
        shrinks: whether anything else can change.
    """

    body: str
    weights: Mapping[str, npt.ArrayLike]
    opset: int = 17
    row: bool = False
    static: frozenset[str] = frozenset()
    resizes: bool = True
    shrinks: bool = True
    side: int = field(default=SIDE)

    def model(self) -> onnx.ModelProto:
        """Conv - operator - head - Gemm, everything random."""
        rng = np.random.default_rng(0)
        drawn = {"first": (CHANNELS, 3, 1, 1), "shift": (CHANNELS,), **self.weights}
        weights = {name: _uniform(rng, value) if isinstance(value, tuple) else value for name, value in drawn.items()}
        layer = "layer = Conv (x, first, shift)  "
        layer += "q = GlobalAveragePool (layer)  t = Flatten (q)" if self.row else "t = Identity (layer)"
        options = {"opset": self.opset, "shape": (1, 3, self.side, self.side)}
        body = f"{layer}  {self.body}"
        found = self._run(model_of(body, weights, outputs="float[n] y", **options))
        body += "  " + HEADS[found.ndim]
        width = self._run(model_of(body, weights, outputs="float[n] numbers", **options)).shape[-1]
        weights["last"] = _uniform(rng, (width, 5))
        return model_of(f"{body}  logits = Gemm (numbers, last)", weights, outputs="float[1, 5] logits", **options)

    def _run(self, model: onnx.ModelProto) -> npt.NDArray[np.float32]:
        """The only output of a model, by onnxruntime."""
        x = np.random.default_rng(1).uniform(-1, 1, (1, 3, self.side, self.side)).astype(np.float32)
        (found,) = checks.run_onnx(model, x).values()
        return found


def case(
    body: str,
    *,
    opset: int = 17,
    row: bool = False,
    static: str = "",
    resizes: bool = True,
    shrinks: bool = True,
    **weights: npt.ArrayLike,
) -> Case:
    """A case; a weight that is a tuple is the shape of random numbers between -1 and 1, any other one is its value."""
    return Case(body, weights, opset, row, frozenset(static.split()), resizes, shrinks)


def assert_all_forms_agree(case: Case) -> None:
    """Gives every atom a variable of its own; the original, built, elastic and exported networks compute the same."""
    model = case.model()
    net = every_atom(model, smallest_image=6)
    assert checks.check_largest(net, model)[0] < checks.TOLERANCE
    assert {part.kind for part in net.propagation.static} == case.static
    variables = {variable.name for variable in net.space}
    assert bool(variables - {RESOLUTION}) == case.shrinks
    assert (RESOLUTION in variables) == case.resizes
    module = net.module()
    rng = random.Random(0)
    for subnet in [net.largest(), net.smallest(), *(net.sample(rng) for _ in range(3))]:
        check = checks.check_subnet(net, module, subnet)
        assert check.passed, (subnet.to_json(), check)


def _uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    return rng.uniform(-1, 1, shape).astype(np.float32)
