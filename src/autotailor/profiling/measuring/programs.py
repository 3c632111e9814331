"""Which programs measure operators: whole SubNets that contain the operators, or replicas of each operator."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from autotailor.enumeration.cover import cover
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from autotailor.profiling.runtimes import Runtime
from autotailor.profiling.runtimes.base import Program


class Programs(Protocol):
    """A way to measure operators.

    Attributes:
        seconds: least and most seconds of measuring for each operator's first visit.
    """

    seconds: tuple[float, float]

    def __call__(self, keys: Sequence[str], unweighed: Collection[str]) -> list[Program]:
        """Programs that together measure some operators.

        Args:
            keys: ids of the operators.
            unweighed: ids of the operators whose memory is not known yet.
        """
        ...


class Replicas:
    """Measures each operator by itself, in several copies."""

    seconds = (0.02, 0.1)

    def __init__(self, runtime: Runtime, operators: Mapping[str, OperatorFeature]) -> None:
        self.runtime, self.operators = runtime, operators

    def __call__(self, keys: Sequence[str], unweighed: Collection[str]) -> list[Program]:
        """One program for each operator."""
        return [self.runtime.replicas(self.operators[key]) for key in keys]


class InPlace:
    """Measures operators in place: in SubNets that contain them, between their neighbours.

    In a SubNet, weights, outputs and scratch memory lie where they lie in use: some in the nearest cache, some in main
    memory, depending on sizes and on the runtime's allocators. A replica cannot reproduce that.
    """

    seconds = (0.01, 0.03)  # one run of a SubNet times all operators in it

    def __init__(
        self,
        runtime: Runtime,
        operators: Mapping[str, OperatorFeature],
        net: SuperNet,
        avoid: Collection[SubNet] = (),
    ) -> None:
        self.runtime, self.operators, self.net, self.avoid = runtime, operators, net, avoid
        self.replicas = Replicas(runtime, operators)
        self.visits = 0

    def __call__(self, keys: Sequence[str], unweighed: Collection[str]) -> list[Program]:
        """SubNets that cover the operators, others in each visit; replicas of operators that no SubNet covers.

        Where only SubNets to avoid hold an operator, as in spaces of a few SubNets, these are taken: the latency of a
        replica is further from the latency in use than a prediction gains by being judged on a SubNet of its own.
        """
        left, unknown = set(keys), set(unweighed)
        programs: list[Program] = []
        seed = self.visits
        self.visits += 1
        for avoid in dict.fromkeys((tuple(self.avoid), ())):
            features = [self.operators[key] for key in keys if key in left]
            for subnet in cover(self.net, self.runtime.fusion, features, avoid=avoid, seed=seed):
                sequence = self.net.sequence(subnet, self.runtime.fusion)
                held = {operator.feature.id for operator in sequence}
                image = self.net.shapes(subnet)[self.net.graph.input][1:]
                program = self.runtime.in_place(subnet.id, sequence, image, held & unknown)
                if program is None:
                    return programs + self.replicas([key for key in keys if key in left], unknown)
                programs.append(program)
                left -= held
                unknown -= held
        return programs + self.replicas([key for key in keys if key in left], unknown)
