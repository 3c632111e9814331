"""The last look at a compiled network: what its weights, its shapes and its results say against it."""

import numpy as np
import pytest

import autotailor
import networks
from autotailor.compiler.check import check_space
from autotailor.ir.errors import AutoTailorError, GraphError, SpaceError
from onnx_text import HEAD, KERNEL, model_of

rng = np.random.default_rng(0)
FC = rng.standard_normal((5, 4)).astype(np.float32)
WEIGHTS = {"kernel": KERNEL, "fc": FC}
STEM = "c = Conv (x, kernel)"
FEATURES = f"{STEM}  p = GlobalAveragePool (c)  f = Flatten (p)"


@pytest.mark.parametrize(("value", "words"), [(np.nan, "1 NaN among"), (np.inf, "1 infinite"), (-np.inf, "1 infinite")])
@pytest.mark.parametrize("name", ["kernel", "fc"])
def test_a_weight_that_is_no_number_is_named(name: str, value: float, words: str) -> None:
    weights = {key: weight.copy() for key, weight in WEIGHTS.items()}
    weights[name].flat[3] = value
    with pytest.raises(GraphError, match=f"weight {name} .*{words}"):
        autotailor.compile(model_of(f"t = Conv (x, kernel)  {HEAD}", weights))


BOUNDS = {
    "Where": "m = Where (mask, f, never)",
    "Add": "m = Add (f, bias)",
    "Max": "m = Max (f, row)",
    "Min": "n = Neg (f)  o = Max (n, row)  m = Neg (o)",
}


@pytest.mark.parametrize("kind", BOUNDS)
def test_an_infinite_bound_is_no_broken_weight(kind: str) -> None:
    constants = {
        "mask": np.array([[True, True, True, False]]), "never": [[-np.inf]], "row": [[-np.inf] * 4],
        "bias": [[0.0, 0.0, 0.0, -np.inf]],
    }  # fmt: skip
    body = f"{FEATURES}  {BOUNDS[kind]}  s = Softmax (m)  y = Gemm <transB = 1> (s, fc)"
    assert autotailor.compile(model_of(body, {**WEIGHTS, **constants})).num_classes == 5


def test_a_mask_that_is_nan_is_a_broken_weight() -> None:
    body = f"{FEATURES}  m = Add (f, bias)  s = Softmax (m)  y = Gemm <transB = 1> (s, fc)"
    with pytest.raises(GraphError, match=r"weight bias of Add .* has 1 NaN among 4"):
        autotailor.compile(model_of(body, {**WEIGHTS, "bias": [[0.0, 0.0, 0.0, np.nan]]}))


REFUSED = {
    "weights of other channels": (f"t = Conv (x, seven)  {HEAD}", "seven of shape .* does not fit the operators"),
    "a bias without axes": (f"t = Conv (x, kernel, half)  {HEAD}", "half of shape .* does not fit its operator"),
    "a result that is NaN": (f"{FEATURES}  g = Gemm <transB = 1> (f, negative)  y = Sqrt (g)", "returns NaN"),
    "the best of its probabilities": (
        f"{FEATURES}  g = Gemm <transB = 1> (f, fc)  s = Softmax (g)  y, places = TopK (s, two)",
        "it returns its 2 largest scores .* export it up to its logits",
    ),
    "probabilities from no Softmax": (
        f"{FEATURES}  g = Gemm <transB = 1> (f, fc)  e = Exp (g)  s = ReduceSum (e, last)  y = Div (e, s)",
        "it returns probabilities",
    ),
    "indices": (f"{FEATURES}  y = ArgMax <axis = 1> (f)", "it returns indices"),
    "a result of the first image": (f"{STEM}  t = GatherND (c, first)  {HEAD}", "depends on the rest of the batch"),
    "a result of all images": (
        f"{STEM}  m = ReduceMax <keepdims = 1> (c, batch)  t = Add (c, m)  {HEAD}",
        "depends on the rest of the batch",
    ),
    "a result that a little of all images goes into": (
        f"{STEM}  m = ReduceMean <keepdims = 1> (c, batch)  l = Mul (m, thousandth)  t = Sub (c, l)  {HEAD}",
        "depends on the rest of the batch",
    ),
    "an operator for one image only": (
        f"{STEM}  g = GlobalAveragePool (c)  k = Reshape (g, each)  t = Conv <group = 4> (c, k)  {HEAD}",
        "can be executed for one image only",
    ),
}
CONSTANTS = {
    "seven": rng.standard_normal((4, 7, 1, 1)).astype(np.float32), "half": 0.5, "last": [1], "two": [2], "first": [[0]],
    "thousandth": 0.001, "negative": -1 - np.abs(FC), "batch": [0], "each": [4, 1, 1, 1],
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_network_is_refused_for(case: str) -> None:
    body, message = REFUSED[case]
    with pytest.raises(AutoTailorError, match=message):
        autotailor.compile(model_of(body, {**WEIGHTS, **CONSTANTS}))


def test_a_network_whose_smallest_subnet_is_nan_is_refused() -> None:
    body = "a = Abs (x)  s = ReduceSum <keepdims = 1> (a, sides)  d = Sub (s, most)  l = Log (d)  c = Add (x, l)"
    model = model_of(f"{body}  t = Conv (c, kernel)  {HEAD}", {**WEIGHTS, "sides": [2, 3], "most": 25.0})
    with pytest.raises(GraphError, match=r"smallest SubNet returns NaN .*out of model\.space"):
        autotailor.compile(model, {"resolution": [4, 8]})
    assert "resolution" in autotailor.compile(model, {"resolution": [7, 8]}).space.positions


def test_a_network_without_subnets_is_refused_before_it_is_trained() -> None:
    net = autotailor.compile(networks.make("resnet"), {}, name="fixed", resolution=32)
    with pytest.raises(SpaceError, match=r"network fixed: nothing of it can change.*section space"):
        check_space(net)
    check_space(autotailor.compile(networks.make("resnet"), name="free", resolution=32))
