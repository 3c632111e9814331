"""Fewer hidden channels in a block, with weights of their own (AdaptiveNet, section 4.1)."""

from autotailor.ir.alternatives.alternative import Branch, read_shares, register_alternative
from autotailor.ir.alternatives.rebuilding import Interior, Rebuilt
from autotailor.ir.space.architecture import round_width


@register_alternative
class Shrunk(Rebuilt):
    """``shrunk: [0.5, 0.25]``: copies with these shares of the hidden channels, the most important ones."""

    kind = "shrunk"
    usual = (0.5, 0.25)

    def choices(self, value: object) -> tuple[str, ...]:
        return read_shares(self.kind, value)

    def fits(self, interior: Interior) -> bool:
        return any(atom.meta > 1 for atom in interior.hidden)

    def rebuild(self, interior: Interior, choice: str) -> Branch:
        share = float(choice.partition(":")[2])
        sizes = {
            atom: min(atom.meta, round_width(share * atom.meta, 8 if atom.meta > 64 else 4)) for atom in interior.hidden
        }
        return interior.narrowed({atom: interior.order(atom)[:size] for atom, size in sizes.items()})
