"""Progressive shrinking (Cai et al., 2020): kinds of variables open one after another, from large choices to small."""

import numpy as np

from autotailor.finetuning.sampling.strategy import Strategy, by_size, register
from autotailor.ir.space.subnet import SubNet, canonical
from autotailor.ir.space.variable import Variable

ORDER = ("resolution", "kernel_size", "depth", "expand_ratio", "width")  # other kinds come last


@register("progressive")
class Progressive(Strategy):
    """The resolution is open from the start; the other kinds open in equal parts of the first nine tenths."""

    OPENED = 0.9

    def draw(self, progress: float, random: np.random.Generator) -> tuple[SubNet, ...]:
        return tuple(self._shrunk(progress, random) for _ in range(self.count))

    def _shrunk(self, progress: float, random: np.random.Generator) -> SubNet:
        drawn = self.independent(random).to_array()
        for position, variable in enumerate(self.space):
            order = by_size(variable)
            allowed = order[: self._open_choices(variable, progress)]
            if int(drawn[position]) not in allowed:
                drawn[position] = allowed[int(random.integers(len(allowed)))]
        return SubNet(self.space, tuple(int(i) for i in canonical(self.space, drawn)[0]))

    def _open_choices(self, variable: Variable, progress: float) -> int:
        """Number of open choices of a variable: 1 at first, later one more after each part of the training."""
        kinds = sorted({v.kind for v in self.space if v.kind != "resolution"}, key=_rank)
        if variable.kind not in kinds:
            return len(variable.choices)
        length = self.OPENED / len(kinds)
        inside = min(1.0, max(0.0, (progress - kinds.index(variable.kind) * length) / length))
        return 1 + min(len(variable.choices) - 1, int(inside * len(variable.choices)))


def _rank(kind: str) -> tuple[int, str]:
    return (ORDER.index(kind) if kind in ORDER else len(ORDER), kind)
