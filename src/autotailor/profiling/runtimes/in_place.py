"""Base of runtimes that are Python packages (wheels) and time each operator within a running SubNet (in place)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import replace

from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion.sequence import PlacedOperator
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.reference_network import IMAGE, reference_feature, reference_operators
from autotailor.profiling.runtimes.wheel import WheelRuntime


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
        from autotailor.ir.metrics.metrics import operator_macs  # needs PyTorch, which opening a runtime does not

        features = {operator.feature.id: operator.feature for operator in operators}
        parts = tuple(self.alone(features[key]) for key in features if key in weighed)
        macs_m = sum(operator_macs(operator.feature) for operator in operators)
        return replace(self.written(key, operators, shape), parts=parts, macs_m=macs_m)
