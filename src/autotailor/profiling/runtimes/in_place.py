"""What wheel runtimes have in common that time operators where they stand, in whole SubNets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import replace

from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion.sequence import PlacedOperator
from autotailor.ir.metrics.metrics import operator_macs
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.reference_network import IMAGE, reference_feature, reference_operators
from autotailor.profiling.runtimes.wheel import WheelRuntime


class InPlaceRuntime(WheelRuntime):
    """A runtime that writes whole SubNets whose operators its runner can tell apart."""

    @abstractmethod
    def written(self, key: str, operators: Sequence[PlacedOperator], shape: tuple[int, ...]) -> Program:
        """A SubNet without weights, with its steps.

        Args:
            key: for the result's line.
            operators: of the SubNet, in topological order; the last one writes the logits.
            shape: of the image, ``(3, r, r)``.

        Raises:
            GraphError: more than one tensor comes from outside.
            ProfilingError: an operator's kind is not known.
        """

    @abstractmethod
    def copied(self, feature: OperatorFeature) -> Program:
        """The replica network of an operator; raises ProfilingError for kinds it cannot write."""

    def anchor(self) -> OperatorFeature:
        """A whole network stands for an operator: it slows down as networks do."""
        return reference_feature()

    def replicas(self, feature: OperatorFeature) -> Program:
        """The replica network of an operator; the anchor as it is."""
        if feature == self.anchor():
            return replace(self.written(feature.id, reference_operators(), IMAGE[1:]), steps=())
        return self.copied(feature)

    def in_place(
        self, key: str, operators: Sequence[PlacedOperator], shape: tuple[int, ...], weighed: Collection[str]
    ) -> Program | None:
        """A whole network without weights, and as its parts the operators to weigh."""
        features = {operator.feature.id: operator.feature for operator in operators}
        parts = tuple(self.alone(features[key]) for key in features if key in weighed)
        macs_m = sum(operator_macs(operator.feature) for operator in operators)
        return replace(self.written(key, operators, shape), parts=parts, macs_m=macs_m)
