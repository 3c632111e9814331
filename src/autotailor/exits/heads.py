"""Heads of exits as nodes of a graph, and a network with exits as a chain of segments.

    probe: pool, linear                 full: 3x3 convolution with stride 2, ReLU, pool, (dropout in training,) linear

A head reads the tensor that a block hands on. The network's own nodes, weights and last output stay as they are. The
size of what a head reads follows few variables, as a rule the resolution and the width of its stage, so that the
operators of all heads of a space are deduced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from autotailor.enumeration import UniqueOperator
from autotailor.exits.answers import ExitError
from autotailor.exits.config import FULL, PROBE, ExitsConfig
from autotailor.ir.execution.head import find_head
from autotailor.ir.feature import OperatorFeature, Shape
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.graph import Graph, Node
from autotailor.ir.space.architecture import check_size
from autotailor.ir.space.joint_sizes import joint_sizes
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from autotailor.sections import meant

MOST_HIDDEN = 128
"""Channels behind the convolution of a full head, at most; otherwise as many as it reads."""
Arrays = Mapping[str, npt.NDArray[np.float32]]


@dataclass(frozen=True)
class Exit:
    """A place for a head.

    Attributes:
        after: the stage or block that it follows, as the configuration names it.
        tensor: that the head reads.
        shape: of the tensor, batch 1.
        axis: of its channels.
    """

    after: str
    tensor: str
    shape: Shape
    axis: int

    @property
    def channels(self) -> int:
        """The number of channels that the head reads."""
        return self.shape[self.axis]

    @property
    def others(self) -> tuple[int, ...]:
        """The axes over which a head takes the mean."""
        return tuple(axis for axis in range(1, len(self.shape)) if axis != self.axis)


def ends(net: SuperNet) -> dict[str, str]:
    """Names of stages and blocks behind which an exit can stand, and the tensors that they hand on in ``net.graph``.

    The last stage is none of them, because the network's own head follows it.
    """
    stages = {stage.name: stage.blocks[-1].output for stage in net.stages[:-1]}
    return stages | {block.name: block.output for block in net.blocks[:-1] if not block.enclosing}


def proposed(net: SuperNet) -> tuple[str, ...]:
    """The last stages, at most four, behind which an exit can stand; first stages see too little to be sure."""
    graph, names = net.slice(net.largest()), list[str]()
    for stage in net.stages[:-1]:
        try:
            find_exits(net, net.largest(), graph, (stage.name,), PROBE)
        except ExitError:
            continue
        names.append(stage.name)
    return tuple(names[-4:])


def check_places(net: SuperNet, after: Sequence[str], kind: str) -> None:
    """Refuses places at which the network has no block, or at which no head of this kind can read.

    Raises:
        ExitError: a name is unknown, the network is no classifier, or its trunk cannot be cut there.
    """
    if not net.num_classes:
        raise ExitError(
            f"space.exits: network {net.name} is no classifier of one row of logits, and only such have exits"
        )
    find_exits(net, net.largest(), net.slice(net.largest()), after, kind)


def find_exits(net: SuperNet, subnet: SubNet, graph: Graph, after: Sequence[str], kind: str) -> tuple[Exit, ...]:
    """The places of exits in the standalone graph of a SubNet, in the order of the trunk; a tensor has one exit.

    Raises:
        ExitError: see ``check_places``.
    """
    tensors, remainder = ends(net), net.elastic.remainder(subnet)
    exits: dict[str, Exit] = {}
    for name in after:
        if name not in tensors:
            raise ExitError(
                f"space.exits.after: network {net.name} has no {name!r} with a block behind it; it has "
                f"{', '.join(tensors)}{meant(name, tensors)}"
            )
        tensor = remainder.tensor(tensors[name])
        (width,) = {block.width_out for block in net.blocks if block.output == tensors[name]}
        axes = [axis for axis, size in enumerate(net.propagation.dimensions[tensors[name]]) if size == width and axis]
        exit_ = Exit(name, tensor, graph.shapes[tensor], axes[0] if axes else 1)
        if kind == FULL and (len(exit_.shape) != 4 or exit_.axis != 1):
            raise ExitError(
                f"space.exits: {name} hands on {list(exit_.shape)}, and a full head reads [1, channels, height, width]"
                "; take head: probe"
            )
        _check_cut(graph, exit_)
        if tensor in exits and tensors[name] == tensors[exits[tensor].after]:
            raise ExitError(
                f"space.exits.after: {exits[tensor].after} and {name} end at one place, where one exit stands; leave "
                "one of them out"
            )
        exits[tensor] = exit_
    order = {name: position for position, node in enumerate(graph.nodes) for name in node.outputs}
    return tuple(sorted(exits.values(), key=lambda each: order[each.tensor]))


def _check_cut(graph: Graph, place: Exit) -> None:
    """Raises ExitError where something else than the exit's tensor leads from before it to the network's end."""
    try:
        cut(graph, place.tensor, graph.outputs)
    except ExitError as error:
        raise ExitError(f"space.exits.after: {place.after} cannot have an exit: {error}; take another stage") from error


def cut(graph: Graph, start: str, stops: Sequence[str]) -> Graph:
    """The part of a graph that computes some of its tensors from another one.

    Raises:
        ExitError: the tensors need more than that one.
    """
    needed, nodes = set(stops), list[Node]()
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs) and start not in node.outputs:
            nodes.append(node)
            needed.update(graph.activations(node))
    written = {name for node in nodes for name in node.outputs}
    if strange := sorted(needed - written - {start}):
        raise ExitError(f"what follows {start} reads {', '.join(strange)} as well")
    used = {name for node in nodes for name in node.inputs}
    shapes = {name: shape for name, shape in graph.shapes.items() if name in written or name == start}
    return replace(
        graph,
        nodes=tuple(reversed(nodes)),
        input=start,
        outputs=tuple(stops),
        shapes=shapes,
        weights={name: weight for name, weight in graph.weights.items() if name in used},
        parameters=graph.parameters & used,
        buffers=graph.buffers & used,
    )


def named(number: int) -> str:
    """The name of an exit's output, counted from 0."""
    return f"exit{number + 1}"


def initial(place: Exit, kind: str, classes: int, random: np.random.Generator) -> dict[str, npt.NDArray[np.float32]]:
    """Weights of a head before its training: ``weight``, ``bias``, and ``kernel``, ``shift`` of a full one."""
    arrays, width = {}, place.channels
    if kind == FULL:
        hidden = min(width, MOST_HIDDEN)
        kernel = random.normal(size=(hidden, width, 3, 3)) * np.sqrt(2 / (9 * width))
        arrays, width = {"kernel": kernel, "shift": np.zeros(hidden)}, hidden
    arrays |= {"weight": np.zeros((classes, width)), "bias": np.zeros(classes)}
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def with_exits(graph: Graph, places: Sequence[Exit], heads: Sequence[Arrays]) -> Graph:
    """The network with a head at each place, whose outputs stand before its own one."""
    nodes, weights, shapes = list(graph.nodes), dict(graph.weights), dict(graph.shapes)
    for number, (place, arrays) in enumerate(zip(places, heads, strict=True)):
        own, head, given = _head(place, arrays, named(number))
        end = next(at for at, node in enumerate(nodes) if place.tensor in node.outputs)
        nodes[end + 1 : end + 1] = head
        weights |= own
        shapes |= given
    outputs = (*(named(number) for number in range(len(places))), graph.output)
    return replace(graph, nodes=tuple(nodes), weights=weights, shapes=shapes, outputs=outputs)


def _head(
    place: Exit, arrays: Arrays, name: str
) -> tuple[dict[str, npt.NDArray[np.float32]], list[Node], dict[str, Shape]]:
    """Weights, nodes and shapes of a head whose output has this name."""
    own = {f"{name}.{part}": array for part, array in arrays.items()}
    nodes, shapes, read = list[Node](), dict[str, Shape](), place.tensor
    channels, axes = place.channels, place.others

    def add(kind: str, written: str, shape: Shape, *inputs: str, **attributes: object) -> str:
        blank = Node(f"{written}.{kind}", kind, (read, *inputs), (written,))
        nodes.append(blank.with_attributes(**attributes))
        shapes[written] = shape
        return written

    if f"{name}.kernel" in own:
        channels = len(arrays["kernel"])
        shape = (1, channels, *((side + 1) // 2 for side in place.shape[2:]))
        window = {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1), "dilations": (1, 1), "group": 1}
        read = add("Conv", f"{name}.map", shape, f"{name}.kernel", f"{name}.shift", **window)
        read = add("Relu", f"{name}.active", shape)
    if place.axis == 1 and len(place.shape) == 4:
        read = add("GlobalAveragePool", f"{name}.mean", (1, channels, 1, 1))
        read = add("Flatten", f"{name}.row", (1, channels), axis=1)
    else:
        read = add("ReduceMean", f"{name}.row", (1, channels), axes=axes, keepdims=0)
    classes = len(arrays["bias"])
    add("Gemm", name, (1, classes), f"{name}.weight", f"{name}.bias", transB=1, transA=0, alpha=1.0, beta=1.0)
    return own, nodes, shapes


def trunk(graph: Graph, places: Sequence[Exit]) -> Graph:
    """The network that returns what heads read, and its own logits behind that."""
    outputs = (*(place.tensor for place in places), *find_head(graph).outputs)
    return cut(graph, graph.input, outputs)


def segments(graph: Graph, places: Sequence[Exit]) -> tuple[Graph, ...]:
    """A network with exits as a chain: each segment reads what the one before hands on first, behind it its answer.

    Args:
        graph: of ``with_exits``.
        places: of its exits.
    """
    reads = [graph.input, *(place.tensor for place in places)]
    stops = [*((place.tensor, named(number)) for number, place in enumerate(places)), (graph.outputs[-1],)]
    return tuple(cut(graph, start, stop) for start, stop in zip(reads, stops, strict=True))


def until(graph: Graph, number: int) -> Graph:
    """The part of a network with exits that computes the answer of one exit alone, counted from 0."""
    return cut(graph, graph.input, (graph.outputs[number],))


def head_alone(graph: Graph, place: Exit, number: int) -> Graph:
    """The head of one exit as a network of its own."""
    return cut(graph, place.tensor, (named(number),))


def head_of(place: Exit, kind: str, classes: int) -> Graph:
    """An untrained head as a network of its own."""
    arrays = initial(place, kind, classes, np.random.default_rng(0))
    weights, nodes, shapes = _head(place, arrays, named(0))
    return Graph("head", tuple(nodes), place.tensor, (named(0),), {place.tensor: place.shape} | shapes, weights)


def operators_of(head: Graph, fusion: FusionRules) -> tuple[OperatorFeature, ...]:
    """The fused operators of a head that is a network of its own, in their order."""
    net = SuperNet.of(head, {})
    return tuple(each.feature for each in net.sequence(net.largest(), fusion))


def head_operators(net: SuperNet, config: ExitsConfig, fusion: FusionRules) -> tuple[UniqueOperator, ...]:
    """The distinct operators of the heads of all SubNets, each with the number of exits that can have it.

    Args:
        net: a classifier.
        config: of the exits.
        fusion: rules of the runtime.

    Raises:
        ExitError: the network has no such place.
    """
    largest = net.largest()
    counts = Counter[OperatorFeature]()
    for place in find_exits(net, largest, net.slice(largest), config.after, config.head):
        heads = (head_of(each, config.head, net.num_classes) for each in _sizes(net, place))
        counts.update({feature for head in heads for feature in operators_of(head, fusion)})
    return tuple(UniqueOperator(feature, exits) for feature, exits in counts.items())


def _sizes(net: SuperNet, place: Exit) -> Iterator[Exit]:
    """An exit with each shape that its tensor can have."""
    dimensions = net.propagation.dimensions[ends(net)[place.after]]
    for sizes in joint_sizes(net.elastic.architecture, dimensions).sizes.tolist():
        shape = tuple(check_size(*each, place.tensor) for each in zip(dimensions, sizes, strict=True))
        yield replace(place, shape=shape)
