"""The unique operators of a space are exactly those that its SubNets contain (paper, section 4.2.1).

The reference reads the exported ONNX of a SubNet: shapes by ONNX's own inference, groups by a fusion written here.
"""

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import autotailor
from autotailor import config
from autotailor.compiler.sources.network import create_network
from autotailor.ir.execution.onnx_writer import to_onnx
from autotailor.ir.feature import OperatorFeature, Shape
from autotailor.ir.fusion.places import Place
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.graph import INPUT, OUTPUT
from autotailor.ir.space.derived import Derived

PRODUCERS = ("Conv", "Gemm")
ACTIVATIONS = ("Relu", "Clip")
WINDOWED = ("Conv", "MaxPool", "AveragePool")
WITH_WEIGHTS = (*PRODUCERS, "MatMul", "BatchNormalization", "LayerNormalization", "Concat", "Add", "Mul", "Sub", "Div")
FUSION = FusionRules(
    "acceptance",
    folds=frozenset({("Conv", "BatchNormalization")}),
    fuses=frozenset(itertools.product(PRODUCERS, ACTIVATIONS)),
    free=frozenset({"Flatten", "Reshape"}),
)
Signature = tuple[Any, ...]

SMALL_SPACES: dict[str, dict[str, Any]] = {
    "timm:resnet50": {
        "divisor": 8, "resolution": [128, 224], "width": [0.65, 1.0], "depth": [0, 2],
        "skip": ["stem.width", "stage1.width", "stage2.width", "stage1.depth", "stage2.depth"],
        "blocks": {"block8": {"expand_ratio": [0.2, 0.25]}, "block16": {"expand_ratio": [0.15, 0.25]}},
    },
    "timm:mobilenetv2_100": {
        "divisor": 8, "resolution": [160, 224], "depth": [0, 1, 2],
        "skip": ["stage2.depth", "stage3.depth"],
        "blocks": {"block5": {"expand_ratio": [3, 6]}, "block6": {"expand_ratio": [4, 6]}},
    },
    "timm:densenet121": {
        "resolution": [160, 224], "width": {"stage2": [0.5, 1.0], "head": [0.5, 1.0]},
        "blocks": {"block3": {"expand_ratio": [0.5, 1.0]}, "block58": {"expand_ratio": [2, 4]}},
    },
    "timm:vit_base_patch16_224": {
        "resolution": [160, 224], "depth": [0, 1, 11],
        "blocks": {"block2": {"expand_ratio": [1, 4]}, "block12": {"expand_ratio": [2.5, 4]}},
    },
}  # fmt: skip
"""Choice lists short enough for all SubNets to be built."""

CONF = Path(__file__).parents[2] / "conf"
CONFIGURED = {
    "timm:resnet50": "resnet50",
    "timm:mobilenetv2_100": "mobilenetv2",
    "timm:densenet121": None,
    "timm:vit_base_patch16_224": "vit_base",
}
"""Networks with the configuration of the paper's full choices; DenseNet has what is proposed."""


@cache
def compiled(source: str, full: bool) -> autotailor.SuperNet:
    """A network whose weights take no memory: only their shapes matter here."""
    name = CONFIGURED[source]
    configured = None if name is None else config.compose(CONF, name, "host")["model"]["space"]
    network = create_network(source, pretrained=False)
    net = autotailor.compile(network, configured if full else SMALL_SPACES[source])
    return net.with_weights({n: np.broadcast_to(np.zeros((), w.dtype), w.shape) for n, w in floats(net)})


def floats(net: autotailor.SuperNet) -> Iterator[tuple[str, Any]]:
    return ((name, weight) for name, weight in net.graph.weights.items() if weight.dtype == np.float32)


def feature_signature(feature: OperatorFeature) -> Signature:
    """What the reference can see of a feature."""
    window = tuple(feature.attribute(n) for n in ("kernel_shape", "strides", "pads", "dilations", "group"))
    return (
        feature.kind,
        feature.inputs,
        feature.outputs,
        feature.weights,
        window if feature.kind in WINDOWED else (),
        tuple(follower.kind for follower in feature.followers),
    )


def reference_signatures(model: onnx.ModelProto) -> set[Signature]:
    """Fused operators of an exported SubNet, with or without the values of its weights."""
    shapes, of_two = inferred_shapes(model, 1), inferred_shapes(model, 2)
    initializers = {value.name: shapes.pop(value.name) for value in model.graph.input if value.name != INPUT}
    initializers.update({tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer})
    shapes = {name: batch_first(shape, of_two[name]) for name, shape in shapes.items()}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for name in dict.fromkeys(node.input):
            readers.setdefault(name, []).append(node)
    found: set[Signature] = set()
    swallowed: set[str] = set()
    for node in model.graph.node:
        if node.name in swallowed or node.op_type in FUSION.free:
            continue
        activations = tuple(shapes[name] for name in node.input if name and name not in initializers)
        weights = [initializers[n] for n in node.input if n in initializers and node.op_type in WITH_WEIGHTS]
        group, followers = [node], ()
        if node.op_type == "Conv" and (following := _alone(group[-1], readers, "BatchNormalization")):
            group.append(following)
            weights = [*weights[:1], weights[0][:1]]
        if node.op_type in PRODUCERS and (following := _alone(group[-1], readers, *ACTIVATIONS)):
            group.append(following)
            followers = (following.op_type,)
        swallowed.update(member.name for member in group)
        outputs = tuple(shapes[name] for name in group[-1].output)
        found.add((node.op_type, activations, outputs, tuple(weights), _window(node), followers))
    return found


def inferred_shapes(model: onnx.ModelProto, batch: int) -> dict[str, Shape]:
    """Shapes of all tensors for some images at once, by ONNX's inference; class tokens stand there for each of them."""
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    joined = {name for node in copied.graph.node if node.op_type == "Concat" for name in node.input}
    for value in (*copied.graph.input, *copied.graph.output):
        if value.name in {INPUT, OUTPUT, *joined}:
            value.type.tensor_type.shape.dim[0].dim_value = batch
    inferred = onnx.shape_inference.infer_shapes(copied, strict_mode=True, data_prop=True).graph
    return {
        value.name: tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        for value in [*inferred.input, *inferred.output, *inferred.value_info]
    }


def batch_first(of_one: Shape, of_two: Shape) -> Shape:
    """A shape with the axis in front that grows with the number of images."""
    axis = next((i for i, (one, two) in enumerate(zip(of_one, of_two, strict=True)) if one != two), 0)
    return (of_one[axis], *of_one[:axis], *of_one[axis + 1 :])


def _alone(node: onnx.NodeProto, readers: Mapping[str, list[onnx.NodeProto]], *kinds: str) -> onnx.NodeProto | None:
    """The only reader of a node's output, where it is of one of some kinds."""
    following = readers.get(node.output[0], [])
    return following[0] if len(following) == 1 and following[0].op_type in kinds else None


def _window(node: onnx.NodeProto) -> Signature:
    if node.op_type not in WINDOWED:
        return ()
    values = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    rank = len(values["kernel_shape"])
    defaults: dict[str, Any] = {"strides": [1] * rank, "pads": [0] * 2 * rank, "dilations": [1] * rank}
    lists = (tuple(values.get(n, defaults.get(n))) for n in ("kernel_shape", "strides", "pads", "dilations"))
    return (*lists, values.get("group", 1) if node.op_type == "Conv" else None)


def signatures(features: Iterable[OperatorFeature]) -> set[Signature]:
    """Signatures of features; a feature that the reference could not tell from another would be lost."""
    listed = list(features)
    seen = {feature_signature(feature) for feature in listed}
    assert len(seen) == len(set(listed))
    return seen


def every_subnet(net: autotailor.SuperNet) -> set[autotailor.SubNet]:
    choices = (range(len(variable.choices)) for variable in net.space)
    return {autotailor.SubNet(net.space, indices) for indices in itertools.product(*choices)}


@pytest.mark.parametrize(
    "source",
    [s if s == "timm:mobilenetv2_100" else pytest.param(s, marks=pytest.mark.sweep) for s in SMALL_SPACES],
)
@pytest.mark.timeout(3600)
def test_the_set_is_that_of_all_subnets(source: str) -> None:
    net = compiled(source, full=False)
    subnets = every_subnet(net)
    assert len(subnets) == net.space.num_distinct
    reference = set().union(*(reference_signatures(to_onnx(net.slice(subnet), hollow=True)) for subnet in subnets))
    assert signatures(net.operators(fusion=FUSION)) == reference


@pytest.mark.sweep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("source", CONFIGURED)
def test_a_thousand_subnets_contain_nothing_else(source: str) -> None:
    net = compiled(source, full=True)
    known = signatures(net.operators(fusion=FUSION))
    rng = random.Random(0)
    for subnet in (net.sample(rng) for _ in range(1000)):
        assert reference_signatures(to_onnx(net.slice(subnet), hollow=True)) <= known, subnet.to_json()


@pytest.mark.sweep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("source", CONFIGURED)
def test_every_operator_is_reached(source: str) -> None:
    net = compiled(source, full=True)
    wanted = signatures(net.operators(fusion=FUSION))
    reached: set[Signature] = set()
    for place in net.places(FUSION):
        for number, feature in enumerate(place.operators):
            if feature_signature(feature) not in reached:
                reached |= reference_signatures(to_onnx(net.slice(through(net, place, number)), hollow=True))
                assert feature_signature(feature) in reached
    assert reached == wanted


def through(net: autotailor.SuperNet, place: Place, number: int) -> autotailor.SubNet:
    """A SubNet with one of a place's operators; the rest is drawn, which reaches further operators on the way."""
    rng = random.Random(number)
    indices = [rng.randrange(len(v.choices)) if v.kind != "depth" else v.default for v in net.space]
    entry = [int(axis) for axis in np.argwhere(place.index == number)[0]]
    chosen = dict(zip(place.variables, entry, strict=False))
    if place.derived is not None:
        chosen.update(summing_to(place.derived, place.derived.values[entry[-1]], rng))
    for name, choice in chosen.items():
        indices[net.space.positions[name]] = choice
    return autotailor.SubNet(net.space, tuple(indices))


def summing_to(derived: Derived, wanted: np.ndarray[Any, Any], rng: random.Random) -> dict[str, int]:
    """Choices of all variables of a derived one that give it a value, found from the last part to the first."""
    chosen: dict[str, int] = {}
    rest = np.asarray(wanted)
    for part, before in zip(reversed(derived.parts), reversed(reachable(derived)), strict=True):
        choices = [c for c in np.ndindex(part.table.shape[:-1]) if tuple((rest - part.table[c]).tolist()) in before]
        choice = rng.choice(choices)
        chosen.update(zip(part.variables, choice, strict=True))
        rest = rest - part.table[choice]
    return chosen


@cache
def reachable(derived: Derived) -> list[set[tuple[int, ...]]]:
    """What the parts before each part can add up to."""
    sums = [{(0,) * derived.values.shape[1]}]
    for part in derived.parts[:-1]:
        rows = part.rows.tolist()
        sums.append({tuple(a + b for a, b in zip(s, row, strict=True)) for s in sums[-1] for row in rows})
    return sums
