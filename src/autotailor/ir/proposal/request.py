"""A search space as the configuration asks for it (paper, section 4.3).

divisor: 8
resolution: [128, 160, 192, 224]                   # or {from: 128, to: 224, step: 4}
depth: [0, 1, 2]                                   # blocks removed from the end of a stage
width: [0.65, 0.8, 1.0]                            # ratios of the stem's and the stages' widths
scale: [0.5, 0.75, 1.0]                            # in their place one ratio for all of them and for hidden channels
blocks:                                            # by kind of block, or by name (block7: ...)
  Bottleneck: {expand_ratio: [0.15, 0.2, 0.25]}
  InvertedResidual: {expand_ratio: [3, 4, 6], kernel_size: [3, 5, 7]}
alternatives:                                      # what may stand in for the maps of blocks; none by default
  low_rank: [0.75, 0.5]
  shrunk: [0.5]                                    # a block with fewer hidden channels, and weights of its own
  merged: [1, 2]                                   # one block in place of two, and of three
  blocks: {Bottleneck: {depthwise: true}}          # by kind of block, or by name, in place of those above
skip: ["stem.*"]                                   # variables to leave out, as shell patterns
exits: {after: [stage2, stage3], head: probe}      # early exits of the exported SubNets, which are no variables

``depth`` and ``width`` may also be given by stage: ``depth: {stage2: [0, 1], "*": [0, 1, 2]}``. A list for all stages
applies to the stages that can take all of its choices; a choice for a named stage must be legal. The ``head`` is the
part behind the last block. The width of the head changes only where the head is named:
``width: {head: [0.5, 1.0], "*": [0.65, 1.0]}``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from autotailor.ir.alternatives.alternative import alternatives
from autotailor.ir.errors import SpaceError
from autotailor.ir.space.variable import Number

ALL = "*"
MOST_RESOLUTIONS = 4096
KEYS = ("divisor", "resolution", "depth", "width", "scale", "blocks", "alternatives", "skip", "exits")

ByOwner = Mapping[str, tuple[Any, ...]]
Alternatives = Mapping[str, tuple[str, ...]]
"""Kind of alternative to its choices."""


@dataclass(frozen=True)
class SpaceRequest:
    """A space as the configuration asks for it; where a field is None, choices are proposed."""

    divisor: int = 8
    resolution: tuple[int, ...] | None = None
    depth: ByOwner | None = None
    width: ByOwner | None = None
    blocks: Mapping[str, Mapping[str, tuple[Number, ...]]] | None = None
    alternatives: Mapping[str, Alternatives] = field(default_factory=dict)
    skip: tuple[str, ...] = ()
    scale: tuple[Number, ...] = ()

    def __post_init__(self) -> None:
        """Refuses choices that no network could have.

        Raises:
            SpaceError: a depth below 0, a width outside of (0, 1], or a choice of a block that is not above 0.
        """
        for depths in (self.depth or {}).values():
            if any(c < 0 for c in depths):
                raise SpaceError(f"space.depth: choices {list(depths)} count removed blocks, from 0")
        for widths in (self.width or {}).values():
            _check_ratios("width", widths)
        _check_ratios("scale", self.scale)
        if self.scale and any((self.width or {}).values()):
            raise SpaceError("space: scale is one ratio for all widths, width has several; leave one of both out")
        for name, kinds in (self.blocks or {}).items():
            for kind, choices in kinds.items():
                if any(not 0 < c < math.inf for c in choices):
                    raise SpaceError(f"space.blocks.{name}.{kind}: expected numbers above 0, not {list(choices)}")

    def check_resolutions(self, largest: int) -> None:
        """Raises SpaceError unless the resolutions lie between 1 and the network's own, in pixels."""
        if any(c > largest or c < 1 for c in self.resolution or ()):
            raise SpaceError(
                f"space.resolution: {list(self.resolution or ())} must lie between 1 and the network's {largest}"
            )

    def alternatives_of(self, name: str, kind: str) -> Alternatives:
        """The alternatives that are asked for a block, by its name, or else by its kind, or else for all blocks."""
        sections = (self.alternatives[key] for key in (name, kind, ALL) if key in self.alternatives)
        return next(sections, {})

    @property
    def is_proposal(self) -> bool:
        """Whether nothing is asked for, so that a space is proposed."""
        return self.blocks is None

    @classmethod
    def from_config(cls, config: Mapping[str, Any] | None) -> SpaceRequest:
        """Reads a ``space`` section. With None everything is proposed; otherwise a size that is not listed stays fixed.

        Raises:
            SpaceError: a key that does not exist, or a value of another form than the text above shows.
        """
        if config is None:
            return cls()
        if isinstance(config, str | PurePath):
            raise SpaceError(
                f"space: expected the section with its keys {list(KEYS)}, not the name {str(config)!r}; read the "
                "file, and give its section model.space"
            )
        unknown = sorted(set(_mapping("space", config)) - set(KEYS), key=str)
        if unknown:
            raise SpaceError(f"space: unknown keys {unknown}; known are {list(KEYS)}")
        divisor = config.get("divisor", 8)
        if isinstance(divisor, bool) or not isinstance(divisor, int) or divisor < 1:
            raise SpaceError(f"space.divisor: expected an integer of at least 1, not {divisor!r}")
        return cls(
            divisor=divisor,
            resolution=_numbers("space.resolution", config.get("resolution"), whole=True),
            depth=_by_owner("space.depth", config.get("depth"), whole=True),
            width=_by_owner("space.width", config.get("width")),
            scale=_numbers("space.scale", config.get("scale")),
            blocks={
                name: {
                    kind: _numbers(f"space.blocks.{name}.{kind}", choices)
                    for kind, choices in _mapping(f"space.blocks.{name}", kinds).items()
                }
                for name, kinds in _mapping("space.blocks", config.get("blocks")).items()
            },
            alternatives=_alternatives(config.get("alternatives")),
            skip=_patterns(config.get("skip")),
        )


def _check_ratios(key: str, ratios: Sequence[Number]) -> None:
    if any(not 0 < ratio <= 1 for ratio in ratios):
        raise SpaceError(f"space.{key}: ratios {list(ratios)} must lie in (0, 1]; the weights hold no more than 1")


def choices_of(by_owner: ByOwner | None, owner: str, proposed: tuple[Any, ...]) -> tuple[Any, ...]:
    """Choices that the configuration lists for a stage, by its name or else by ``*``; or the proposed ones."""
    return proposed if by_owner is None else by_owner.get(owner, by_owner.get(ALL, ()))


def _mapping(where: str, value: Any) -> dict[str, Any]:
    """A mapping with names as keys; an absent one is empty."""
    if value is not None and not isinstance(value, Mapping):
        raise SpaceError(f"{where}: expected names with their choices, not {value!r}")
    return {str(key): inner for key, inner in (value or {}).items()}


def _numbers(where: str, value: Any, whole: bool = False) -> tuple[Any, ...]:
    """A list of numbers, or of integers; an absent one is empty. Evenly spaced integers may be written as a range."""
    if isinstance(value, Mapping) and set(value) == {"from", "to", "step"}:
        first, last, step = _numbers(where, [value["from"], value["to"], value["step"]], whole=True)
        if step < 1 or last < first:
            raise SpaceError(f"{where}: a range goes up from its first number in steps of at least 1, not {value!r}")
        if (last - first) // step >= MOST_RESOLUTIONS:
            raise SpaceError(f"{where}: {value!r} has more than {MOST_RESOLUTIONS} numbers; give a larger step")
        return tuple(range(first, last + 1, step))
    kinds = int if whole else int | float
    fits = isinstance(value, Sequence) and not isinstance(value, str)
    if value is not None and not (fits and all(isinstance(x, kinds) and not isinstance(x, bool) for x in value)):
        raise SpaceError(f"{where}: expected a list of {'integers' if whole else 'numbers'}, not {value!r}")
    return tuple(value or ())


def _alternatives(value: Any) -> dict[str, Alternatives]:
    """Name or kind of a block, or ``*`` for all others, to kinds of alternatives and their choices."""
    every = _mapping("space.alternatives", value)
    by_block = _mapping("space.alternatives.blocks", every.pop("blocks", None))
    for_all = {ALL: _choices("space.alternatives", every)} if every else {}
    return for_all | {name: _choices(f"space.alternatives.blocks.{name}", own) for name, own in by_block.items()}


def _choices(where: str, value: Any) -> Alternatives:
    """Kind of alternative to its choices, as far as there are any."""
    by_kind = {}
    for kind, own in _mapping(where, value).items():
        if kind not in alternatives():
            raise SpaceError(f"{where}: no kind is called {kind!r}; known are {sorted(alternatives())}")
        if choices := alternatives()[kind].choices(own):
            by_kind[kind] = choices
    return by_kind


def _by_owner(where: str, value: Any, whole: bool = False) -> dict[str, tuple[Any, ...]]:
    """Stage name, or ``*`` for all others, to choices."""
    by_owner = _mapping(where, value) if isinstance(value, Mapping) else {ALL: value}
    return {owner: _numbers(where, choices, whole) for owner, choices in by_owner.items()}


def _patterns(value: Any) -> tuple[str, ...]:
    """Shell patterns of variable names."""
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    if value is not None and not (is_list and all(isinstance(item, str) for item in value)):
        raise SpaceError(f'space.skip: expected a list of patterns such as ["stem.*"], not {value!r}')
    return tuple(value or ())
