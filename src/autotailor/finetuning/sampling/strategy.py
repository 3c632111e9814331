"""The base class of sampling strategies, and their registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from inspect import isabstract
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from autotailor.finetuning.errors import TrainingError
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import SubNet, largest, smallest
from autotailor.ir.space.variable import Space, Variable
from autotailor.sections import Section

if TYPE_CHECKING:  # stages are made with PyTorch, which whoever only reads a configuration does not need
    from autotailor.ir.blocks.stage import Stage

Kind = TypeVar("Kind", bound="type[Strategy]")


class NoParameters(Section, of="finetune.sampling", error=TrainingError):
    """The section ``finetune.sampling`` of a strategy that has no parameters."""


class Strategy(ABC):
    """Draws the SubNets of one training step.

    Args:
        space: of the SuperNet.
        stages: variable name to the stage it belongs to (variables of the whole network are left out).
        count: SubNets per step.
        parameters: an instance of ``section``.
        macs: makes the metric of multiply-accumulates; a strategy that does not ask for MACs never calls this function.
    """

    in_place: ClassVar[bool] = False  # whether SubNets learn from the largest one of the same step
    section: ClassVar[type[Section]] = NoParameters  # reads the section ``finetune.sampling``
    least: ClassVar[int] = 1  # fewest SubNets per step with which every kind that the strategy draws is trained

    def __init__(
        self,
        space: Space,
        stages: Mapping[str, str],
        count: int,
        parameters: Any = None,
        macs: Callable[[], Metric] | None = None,
    ) -> None:
        self.space, self.stages, self.count = space, stages, count
        self.parameters = self.section() if parameters is None else parameters
        self._macs = macs

    @abstractmethod
    def draw(self, progress: float, random: np.random.Generator) -> tuple[SubNet, ...]:
        """Draws ``count`` SubNets for one step; the largest comes first if it is drawn.

        Args:
            progress: share of the training that is done, 0 to 1.
            random: generator of the step.
        """

    @property
    def identity(self) -> tuple[str, ...]:
        """What a training depends on beside the strategy's name and parameters; it identifies checkpoints."""
        return ()

    def step(self, progress: float, random: np.random.Generator) -> tuple[SubNet, ...]:
        """What ``draw`` gives, where a step can train it.

        Raises:
            TrainingError: ``draw`` has given something else; the message says what was expected.
        """
        drawn = self.draw(progress, random)
        if reason := self._wrong(drawn):
            raise TrainingError(f"sampling strategy {type(self).__name__}: draw gave {reason}")
        return drawn

    def _wrong(self, drawn: Any) -> str:
        """What is wrong about the SubNets of a step, and what was expected; empty where nothing is."""
        if not isinstance(drawn, tuple | list):
            return f"{type(drawn).__name__}, expected a tuple of SubNets"
        if not 1 <= len(drawn) <= self.count:
            return f"{len(drawn)} SubNets, expected 1 to {self.count} (finetune.subnets)"
        for subnet in drawn:
            if not isinstance(subnet, SubNet):
                return f"a {type(subnet).__name__} among the SubNets, expected SubNets alone"
            if subnet.space != self.space:
                return f"SubNet {subnet.id} of another space, expected SubNets of self.space"
        if self.in_place and self.largest() in drawn[1:] and drawn[0] != self.largest():
            return "the largest SubNet behind another one; with in_place the others learn from it, and it comes first"
        return ""

    def largest(self) -> SubNet:
        """The unmodified network."""
        return largest(self.space)

    def smallest(self) -> SubNet:
        """The SubNet that keeps the least of the network."""
        return smallest(self.space)

    def independent(self, random: np.random.Generator) -> SubNet:
        """A SubNet whose variables are drawn independently and uniformly.

        A uniform draw over the distinct SubNets would give mostly deep ones, but every depth must be trained equally.
        """
        return SubNet(self.space, tuple(int(random.integers(len(v.choices))) for v in self.space))

    def between(self, random: np.random.Generator) -> SubNet:
        """A SubNet at a random distance from the largest: each variable stays unmodified with a common probability.

        Independent draws of all variables would hardly ever give a SubNet near the largest one. Such SubNets matter:
        sensitivities are measured at single modifications, and the best SubNets for generous budgets have few.
        """
        drawn, whole = self.independent(random).indices, self.largest().indices
        keeps = random.random(len(whole)) < random.random()
        return SubNet(self.space, tuple(w if keep else d for w, d, keep in zip(whole, drawn, keeps, strict=True)))


def by_size(variable: Variable) -> tuple[int, ...]:
    """Choice indices from the choice that keeps the most of the network to the one that keeps the least."""
    return tuple(sorted(range(len(variable.choices)), key=lambda index: -abs(index - variable.least)))


def stages_of(space: Space, stages: Sequence[Stage]) -> dict[str, str]:
    """Variable name to the name of the stage that owns the variable, or that owns its block."""
    owners = {block.name: stage.name for stage in stages for block in stage.blocks}
    owners |= {stage.name: stage.name for stage in stages}
    return {variable.name: owners[variable.owner] for variable in space if variable.owner in owners}


STRATEGIES: dict[str, type[Strategy]] = {}


def register(name: str) -> Any:
    """Class decorator: makes a strategy known under a name of the configuration."""

    def add(strategy: Kind) -> Kind:
        if name in STRATEGIES:
            raise TrainingError(f"sampling strategy {name!r} is registered twice; choose another name")
        if not (isinstance(strategy, type) and issubclass(strategy, Strategy)) or isabstract(strategy):
            raise TrainingError(
                f"sampling strategy {name!r}: expected a class that derives from Strategy and defines draw"
            )
        STRATEGIES[name] = strategy
        return strategy

    return add
