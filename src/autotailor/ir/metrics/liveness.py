"""Liveness: the memory of activations and workspaces while each step of a network runs.

A step is one fused operator, in the graph's order. The step needs the activations that live while the operator runs,
the outputs of the operator, and its workspace. An activation lives from the operator that writes the activation to the
last operator that reads it. Both depend on gates: where a block is removed, the followers of the block read the
block's input.

The memory of one step depends on few variables: on those of the sizes of what may live, and on the gates that decide
what lives. So the memory of a step is a table over these variables, and the peak of a SubNet is the largest of its
entries of all tables. A ResNet50 has 88 steps and 16 tables.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.gate import Gate
from autotailor.ir.space.metric import FloatArray, Scope, Term, grid, look_up, shape_of, strides_of
from autotailor.ir.space.subnet import IntArray
from autotailor.ir.space.variable import Space

ROWS = 4096
"""SubNets that are evaluated at once: the table of steps stays within some megabytes."""
LARGEST = 20_000
"""Entries of a table of steps; the memory of a step over more joint choices is calculated for each SubNet."""


@dataclass(frozen=True, eq=False)
class Buffer:
    """Memory that one operator writes and others read.

    Attributes:
        size: its MiB, ungated.
        birth: step that writes it; 0 for the network's input.
        gate: of that step's block; None where the step is always there.
        readers: steps that read it, each with its gate.
        source: index of the buffer whose memory it takes over where nothing reads that buffer later; None where
            the operator does not run in place.
    """

    size: Term
    birth: int
    gate: Gate | None
    readers: tuple[tuple[int, Gate | None], ...]
    source: int | None


@dataclass(frozen=True, eq=False)
class Liveness:
    """What lives while each step runs.

    Attributes:
        space: the variables.
        buffers: activations, which live for some steps, in the order of birth.
        workspace: scratch memory of each step that has any, gated.
        bypasses: (index of the buffer read, index of the buffer written, gate) of each block that can be removed, in
            the order of the trunk.
        steps: number of steps.
    """

    space: Space
    buffers: tuple[Buffer, ...]
    workspace: Mapping[int, Term]
    bypasses: tuple[tuple[int, int, Gate], ...]
    steps: int

    def peaks(self, array: IntArray) -> FloatArray:
        """The largest sum of live activations and workspace for choice indices ``[n, variables]``: ``[n]``, MiB."""
        peaks = np.zeros(len(array))
        for rows, columns in look_up(array, *self._flat):
            for values in columns:
                np.maximum(peaks[rows], values, out=peaks[rows])
        if self.wide:
            for start in range(0, len(array), ROWS):
                rows = slice(start, start + ROWS)
                np.maximum(peaks[rows], self.live(array[rows])[:, self.wide].max(axis=1), out=peaks[rows])
        return peaks

    def live(self, array: IntArray) -> FloatArray:
        """Live activations and workspace before and at each step, for choice indices: ``[n, 1 + steps]``, MiB."""
        rows, last = np.arange(len(array)), self._last_uses(array)
        changes = np.zeros((len(array), self.steps + 2))
        for index, buffer in enumerate(self.buffers):
            size = replace(buffer.size, gate=buffer.gate).values(self.space, array)
            births = np.full(len(array), buffer.birth)
            if buffer.source is not None:  # until the source has been read, the memory counts as the source's
                births += last[:, buffer.source] == buffer.birth
            changes[rows, births] += size
            changes[rows, np.maximum(last[:, index], births) + 1] -= size
        live = np.cumsum(changes[:, :-1], axis=1)
        for step, term in self.workspace.items():
            live[:, step] += term.values(self.space, array)
        return live

    @cached_property
    def tables(self) -> Mapping[Scope, FloatArray]:
        """The largest memory of the steps of each scope, in MiB; steps of ``wide`` are left out."""
        tables: dict[Scope, FloatArray] = {}
        for scope, steps in self._steps_of.items():
            if steps[0] not in self.wide:
                rows = grid(self.space, scope)
                parts = [self.live(rows[i : i + ROWS])[:, steps].max(axis=1) for i in range(0, len(rows), ROWS)]
                tables[scope] = np.concatenate(parts).reshape(shape_of(self.space, scope))
        return tables

    @cached_property
    def _flat(self) -> tuple[npt.NDArray[np.float32], list[FloatArray]]:
        strides = strides_of(self.space, list(self.tables.items()))
        return strides, [table.ravel() for table in self.tables.values()]

    @cached_property
    def wide(self) -> list[int]:
        """Steps whose memory depends on too many joint choices for a table."""
        counts = {scope: math.prod(shape_of(self.space, scope)) for scope in self._steps_of}
        return [step for scope, steps in self._steps_of.items() if counts[scope] > LARGEST for step in steps]

    @cached_property
    def _steps_of(self) -> Mapping[Scope, list[int]]:
        """Scope to the steps whose memory depends on the variables of the scope; scopes inside others are left out."""
        scopes = {step: frozenset(self._names(step)) for step in range(self.steps + 1)}
        whole = [scope for scope in set(scopes.values()) if not any(scope < other for other in scopes.values())]
        by_scope: dict[Scope, list[int]] = {}
        for step, names in scopes.items():
            home = min((w for w in whole if names <= w), key=lambda w: (len(w), sorted(w)))
            by_scope.setdefault(tuple(sorted(self.space.positions[name] for name in home)), []).append(step)
        return by_scope

    def _names(self, step: int) -> Iterator[str]:
        """Names of all variables that the memory of a step depends on."""
        for index, buffer in enumerate(self.buffers):
            if buffer.birth > step:
                break
            decided = self._needed(index, step)
            if decided is None and buffer.birth < step - 1:
                continue
            yield from buffer.size.scope
            yield from () if buffer.gate is None else buffer.gate.variables
            yield from decided or ()
            if buffer.source is not None and buffer.birth >= step - 1:
                yield from self._needed(buffer.source, buffer.birth + 1) or ()
        if step in self.workspace:
            yield from self.workspace[step].scope

    def _needed(self, index: int, step: int) -> frozenset[str] | None:
        """Variables that decide whether a buffer is read at a step or later; None where it never is."""
        readers = [gate for when, gate in self.buffers[index].readers if when >= step]
        if None in readers:
            return frozenset()
        scopes = [frozenset(gate.variables) for gate in readers if gate is not None]
        for read, written, gate in self.bypasses:
            if read == index and self.buffers[written].birth >= step:
                scopes.append(frozenset(gate.variables))
            elif read == index and (further := self._needed(written, step)) is not None:
                scopes.append(further.union(gate.variables))
        return frozenset[str]().union(*scopes) if scopes else None

    def _last_uses(self, array: IntArray) -> IntArray:
        """Last step that reads each buffer ``[n, buffers]``, around removed blocks."""
        last = np.empty((len(array), len(self.buffers)), dtype=np.int64)
        for index, buffer in enumerate(self.buffers):
            last[:, index] = buffer.birth
            for step, gate in buffer.readers:
                reads = step if gate is None else np.where(gate.is_open(self.space.positions, array), step, 0)
                np.maximum(last[:, index], reads, out=last[:, index])
        for read, written, gate in reversed(self.bypasses):
            further = np.where(gate.is_open(self.space.positions, array), 0, last[:, written])
            np.maximum(last[:, read], further, out=last[:, read])
        return last
