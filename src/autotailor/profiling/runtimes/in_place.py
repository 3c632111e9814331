"""Base of runtimes that are Python packages (wheels) and time each operator within a running SubNet (in place).

The reference network anchors every batch: its latency tells how fast the machine is at that moment. It holds dense,
pointwise and depthwise convolutions, residual sums and a classifier, in the proportions of today's networks. It has 109
million multiply-accumulates and 5 MB of weights, which is more than a core's own cache. A single operator would be a
worse anchor: when a machine's other users let one convolution become 22 % faster, whole networks became only 16 %
faster.
"""

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import replace

from autotailor.ir.feature import Follower, OperatorFeature, Shape, freeze_attributes
from autotailor.ir.fusion.sequence import PlacedOperator
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.wheel import WheelRuntime

KIND = "ReferenceNetwork"
IMAGE = (1, 3, 112, 112)
CLASSES = 1000


class InPlaceRuntime(WheelRuntime):
    """A runtime that writes whole SubNets, and whose runner can time each operator of a SubNet."""

    @abstractmethod
    def written(self, key: str, operators: Sequence[PlacedOperator], shape: tuple[int, ...]) -> Program:
        """The program of a SubNet without weights, with a step for each operator.

        Args:
            key: the name under which the runner reports the SubNet.
            operators: the SubNet's operators in topological order; the last one writes the logits.
            shape: the image's shape, ``(3, r, r)``.

        Raises:
            GraphError: the operators read more than one tensor that none of them writes.
            ProfilingError: the runtime does not know an operator's kind.
        """

    @abstractmethod
    def copied(self, feature: OperatorFeature) -> Program:
        """The replica network of an operator; raises ProfilingError for kinds that the runtime cannot write."""

    def anchor(self) -> OperatorFeature:
        """A whole network in the role of an operator, because it slows down as networks do."""
        return reference_feature()

    def replicas(self, feature: OperatorFeature) -> Program:
        """The replica network of an operator; the anchor is a whole network and is not replicated."""
        if feature == self.anchor():
            return replace(self.written(feature.id, reference_operators(), IMAGE[1:]), steps=())
        return self.copied(feature)

    def in_place(
        self, key: str, operators: Sequence[PlacedOperator], shape: tuple[int, ...], weighed: Collection[str]
    ) -> Program | None:
        """The program of a whole network without weights; its parts are the operators to weigh."""
        from autotailor.ir.metrics.sums import operator_macs  # needs PyTorch, which opening a runtime does not

        features = {operator.feature.id: operator.feature for operator in operators}
        parts = tuple(self.alone(features[key]) for key in features if key in weighed)
        macs_m = sum(operator_macs(operator.feature) for operator in operators)
        return replace(self.written(key, operators, shape), parts=parts, macs_m=macs_m)


def reference_feature() -> OperatorFeature:
    """The feature under which the reference network is in a LUT."""
    return OperatorFeature(KIND, (IMAGE,), ((1, CLASSES),))


def reference_operators() -> tuple[PlacedOperator, ...]:
    """The reference network's operators in topological order."""
    stem = _conv("image", "stem", IMAGE, 32, 3, 2)
    wide = _conv("stem", "wide", _shape(stem), 96, 1)
    depthwise = _conv("wide", "depthwise", _shape(wide), 96, 3, 2, group=96)
    narrow = _conv("depthwise", "narrow", _shape(depthwise), 64, 1)
    dense = _conv("narrow", "dense", _shape(narrow), 64, 3)
    first = _add("narrow", "dense", "first", _shape(dense))
    down = _conv("first", "down", _shape(first), 128, 3, 2)
    wider = _conv("down", "wider", _shape(down), 512, 1)
    deeper = _conv("wider", "deeper", _shape(wider), 512, 3, group=512)
    back = _conv("deeper", "back", _shape(deeper), 128, 1)
    second = _add("down", "back", "second", _shape(back))
    last = _conv("second", "last", _shape(second), 256, 3, 2)
    head = _conv("last", "head", _shape(last), 512, 1)
    vector = (1, 512)
    pool = OperatorFeature("GlobalAveragePool", (_shape(head),), (vector,), followers=(Follower("Flatten"),))
    weights, attributes = ((CLASSES, 512), (CLASSES,)), freeze_attributes({"transB": 1})
    classify = OperatorFeature("Gemm", (vector,), ((1, CLASSES),), weights, attributes)
    ends = PlacedOperator(pool, ("head",), ("vector",)), PlacedOperator(classify, ("vector",), ("logits",))
    trunk = stem, wide, depthwise, narrow, dense, first, down, wider, deeper, back, second, last, head
    return (*trunk, *ends)


def _shape(operator: PlacedOperator) -> Shape:
    return operator.feature.outputs[0]


def _conv(
    reads: str, writes: str, shape: Shape, width: int, kernel: int, stride: int = 1, group: int = 1
) -> PlacedOperator:
    """A convolution with a bias and a ReLU."""
    side = -(-shape[2] // stride)
    pads = (kernel // 2,) * 4
    attributes = {"group": group, "pads": pads, "strides": (stride, stride), "dilations": (1, 1)}
    weights = ((width, shape[1] // group, kernel, kernel), (width,))
    outputs = ((1, width, side, side),)
    feature = OperatorFeature("Conv", (shape,), outputs, weights, freeze_attributes(attributes), (Follower("Relu"),))
    return PlacedOperator(feature, (reads,), (writes,))


def _add(one: str, other: str, writes: str, shape: Shape) -> PlacedOperator:
    return PlacedOperator(OperatorFeature("Add", (shape, shape), (shape,)), (one, other), (writes,))
