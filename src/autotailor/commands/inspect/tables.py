"""The tables of ``inspect``, 100 columns wide at most."""

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from autotailor.commands.inspect.alternatives import fitting, merges
from autotailor.commands.terminal import terminal
from autotailor.compiler.sources.outputs import no_classes
from autotailor.exits.heads import proposed
from autotailor.ir.blocks.block import Block
from autotailor.ir.dimensions.dimension import RESOLUTION, Kernel
from autotailor.ir.errors import printable
from autotailor.ir.execution.batch_norm import KIND, biased_convolutions, placeholders
from autotailor.ir.feature import Shape
from autotailor.ir.junctions import MERGED, OPERATOR, span_of
from autotailor.ir.metrics.elasticity import is_elastic, unmodified_values
from autotailor.ir.propagation import StaticPart
from autotailor.ir.proposal.request import SpaceRequest
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Choice, shown
from autotailor.ir.supernet import SuperNet

WIDTH = 100
MOSTLY_ELASTIC = 0.8
LISTED = 5  # operators without variables


def print_inspection(net: SuperNet, proposed: bool, console: Console | None = None, task: str = "") -> None:
    """Prints all findings of the compiler.

    Args:
        net: the compiled network.
        proposed: whether its space was proposed rather than configured.
        console: where to print; standard output when None.
        task: of a network whose outputs are no classes; "" where it is not known to be one.
    """
    console = console or terminal()
    if not console.is_terminal or console.width > WIDTH:
        console = terminal(file=console.file, width=WIDTH)
    macs = net.macs()
    shape = _times(net.input_shape[1:])
    console.print(
        Text(printable(net.name), style="bold"),
        f"  {shape} in, {_returned(net, task)} out",
        markup=False,
        highlight=False,
    )
    if not net.num_classes and not task:
        console.print(
            f"It {no_classes(net.graph.outputs)}. `data.task: outputs` measures how near a SubNet's outputs are to its "
            "own, on pictures without labels (`data.labels: false`).",
            markup=False,
            highlight=False,
        )
    if net.head.activation and not task:
        console.print(
            f"The network ends in {net.head.activation}: training uses the logits before it, exports include it."
        )
    if net.graph.given:
        console.print(
            f"The file takes {net.graph.given.image(net.input_shape)}, and so does `model.given.onnx` of exports.",
            markup=False,
        )
    console.print()
    console.print(_stages(net) if net.blocks else "Blocks: none; no template matches.")
    console.print(_variables(net, proposed) if len(net.space) else "Variables: none.")
    if proposed and RESOLUTION not in net.space.positions:
        side = _times(net.input_shape[2:])
        console.print(
            f"The images stay {side}: shapes or weights of the network depend on this size.\n", highlight=False
        )
    _print_counts(net, console)
    console.print(_subnets(net, macs))
    _print_share(net, macs, console)
    console.print(_static_parts(net.static_parts) if net.static_parts else "Static parts: none.")
    notes = (_alternatives_note(net), _exits_note(net), *_merge_notes(net), *_kernel_notes(net), _folded_note(net))
    for note in filter(None, notes):
        console.print(note, highlight=False, markup=False)


def _returned(net: SuperNet, task: str) -> str:
    """What a network returns, in words."""
    if net.num_classes and not task:
        return f"{net.num_classes} classes"
    shapes = [f"{name} {_times(shape[1:])}" for name, shape in zip(net.graph.outputs, net.output_shapes, strict=True)]
    return printable(", ".join(shapes))


def _alternatives_note(net: SuperNet) -> str:
    """For how many blocks there are alternatives that the space does not have, by kind."""
    sections = (net.space_config or {}).get("alternatives") or {}
    counts = {} if "blocks" in sections else fitting(net)
    said = _names(
        f"{kind} for {count} of {len(net.blocks)} blocks" for kind, count in counts.items() if kind not in sections
    )
    return f"Alternatives that `space.alternatives` can ask for: {said}." if said else ""


def _exits_note(net: SuperNet) -> str:
    """The last stages behind which an exit can stand; "" where there are none."""
    places = proposed(net) if net.num_classes else ()
    return f"Exits that `space.exits` can ask for: {{after: [{', '.join(places)}]}}." if places else ""


def _merge_notes(net: SuperNet) -> list[str]:
    """Where merged blocks were asked for that are not in the space, one note for each choice and reason."""
    request, kinds = SpaceRequest.from_config(net.space_config), {block.name: block.kind for block in net.blocks}
    missing: dict[str, list[str]] = {}
    for name, choice, reason in merges(net) if request.alternatives else ():
        variable = net.space.find(name, OPERATOR)
        if choice in request.alternatives_of(name, kinds[name]).get(MERGED, ()) and (
            variable is None or choice not in variable.choices
        ):
            reason = reason or "depth removes a later one of its blocks and not the first"
            missing.setdefault(f"for {span_of(choice) + 1} blocks from %s on: {reason}", []).append(name)
    return [f"No merged block {where % _names(names)}." for where, names in missing.items()]


def _kernel_notes(net: SuperNet) -> list[str]:
    """Why blocks with large kernels have no kernel size, one note for each reason."""
    blocks: dict[str, list[str]] = {}
    for block in net.blocks:
        for node in block.nodes:
            axes = net.propagation.dimensions[node.inputs[1]][2:] if node.kind == "Conv" else ()
            sides = {axis.meta for axis in axes}
            if not sides or max(sides) <= Kernel.LEAST or any(isinstance(axis, Kernel) for axis in axes):
                continue
            pad = net.graph.producers.get(node.inputs[0])
            reason = "its pads cannot shrink with it, or its sides are even or unlike"
            if pad is not None and pad.kind == "Pad":
                reason = f"a Pad (mode {pad.get('mode', 'constant')}) in front of it cannot be folded into it"
            blocks.setdefault(f"kernel of {_times(tuple(axis.meta for axis in axes))}: {reason}", []).append(block.name)
    return [f"No kernel_size for {_names(dict.fromkeys(names))}, {reason}." for reason, names in blocks.items()]


def _folded_note(net: SuperNet) -> str:
    """A note about BatchNorm that was put back, or that may be folded into weights."""
    if count := len(placeholders(net.graph)):
        return f"BatchNorm was put back behind {count} operators; fine-tuning calibrates it first."
    candidates = len(biased_convolutions(net.original))
    if candidates and not any(node.kind == KIND for node in net.graph.nodes):
        return (
            f"No BatchNorm, and {candidates} convolutions with a bias: if an exporter folded BatchNorm into them "
            f"without a record,\n--batch-norm reinsert (batch_norm: reinsert in the configuration) puts it back."
        )
    return ""


class _Table(Table):
    """A table whose cells name parts of somebody's network."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Adds a row; its texts become printable, and are no markup."""
        super().add_row(*(escape(printable(cell)) if isinstance(cell, str) else cell for cell in cells), **options)


def _table(title: str, *columns: str, right: Sequence[str] = ()) -> Table:
    table = _Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False
    )
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def _stages(net: SuperNet) -> Table:
    """One row for each sequence of similar blocks."""
    table = _table("Stages and blocks", "stage", "blocks", "kind", "output", "removable", "variables of each block")
    for stage in net.stages:
        removable = {block.name for block in stage.removable}
        name = stage.name
        for (kind, variables), run in itertools.groupby(stage.blocks, lambda b: (b.kind, _variables_of(net, b))):
            blocks = list(run)
            count = sum(block.name in removable for block in blocks)
            output = _times(net.graph.shapes[blocks[-1].output][1:])
            names = _names(block.name for block in blocks)
            table.add_row(name, names, kind, output, f"{count} of {len(blocks)}" if count else "-", variables or "-")
            name = ""
    return table


def _variables_of(net: SuperNet, block: Block) -> str:
    return ", ".join(kind for kind in block.handles if net.space.find(block.name, kind))


def _variables(net: SuperNet, proposed: bool) -> Table:
    """One row for each kind of variable and list of choices."""
    title = "Variables (proposed; --yaml prints them to edit)" if proposed else "Variables"
    table = _table(title, "variable", "of", "choices, the default in bold")
    rows: dict[tuple[str, tuple[Choice, ...], int], list[str]] = {}
    for variable in net.space:
        rows.setdefault((variable.kind, variable.choices, variable.default), []).append(variable.owner)
    for (kind, choices, default), owners in sorted(rows.items(), key=lambda row: _order(net, row[0][0])):
        words = (Text(shown(c), style="bold" if i == default else "") for i, c in enumerate(choices))
        table.add_row(kind, _names(owners) or "the images", Text(" ").join(words))
    return table


def _order(net: SuperNet, kind: str) -> int:
    """Position of a kind's first variable in the space."""
    return [variable.kind for variable in net.space].index(kind)


def _print_counts(net: SuperNet, console: Console) -> None:
    space = net.space
    console.print(
        f"Modifications {space.num_modifications}, variants {_count(space.num_variants)}, "
        f"distinct {_count(space.num_distinct)}",
        highlight=False,
    )
    if space.merged:
        by_kind = _names({variable for variable, _, _ in space.merged})
        console.print(f"{len(space.merged)} choices became equal to others by rounding, of {by_kind}", highlight=False)
    console.print()


def _subnets(net: SuperNet, macs: Metric) -> Table:
    table = _table(
        "SubNets", "", RESOLUTION, "MACs (M)", "%", "parameters (M)", right=("MACs (M)", "%", "parameters (M)")
    )
    largest, smallest = net.largest(), net.smallest()
    named = {"largest": largest, "smallest": smallest}
    if RESOLUTION in net.space.positions:
        indices = list(smallest.indices)
        indices[net.space.positions[RESOLUTION]] = net.space[RESOLUTION].default
        named["smallest, unscaled images"] = SubNet(net.space, tuple(indices))
    arrays = [subnet.to_array() for subnet in named.values()]
    costs, sizes = macs.predict(arrays), net.parameters().predict(arrays)
    for (name, subnet), cost, size in zip(named.items(), costs, sizes, strict=True):
        sides = net.input_shape[2:] if RESOLUTION not in net.space.positions else (int(subnet[RESOLUTION]),)
        share = f"{cost / costs[0]:.1%}" if costs[0] else "-"
        table.add_row(name, _times(tuple(dict.fromkeys(sides))), f"{cost:,.1f}", share.rstrip("%"), f"{size:,.2f}")
    return table


def _print_share(net: SuperNet, macs: Metric, console: Console) -> None:
    share = net.elastic_share()
    console.print(
        f"Share of MACs in elastic operators {share.elastic:.1%} (resizable {share.resized:.1%}, "
        f"removable {share.removable:.1%})",
        highlight=False,
    )
    console.print()
    if share.elastic < MOSTLY_ELASTIC and len(macs.terms):
        console.print(_inelastic(net, macs))


def _inelastic(net: SuperNet, macs: Metric) -> Table:
    """The operators with the most MACs among those that no variable changes."""
    table = _table("Where no variable reaches", "% of MACs", "operator", "because", right=("% of MACs",))
    values = unmodified_values(macs)
    rows = [(value, term.label) for term, value in zip(macs.terms, values, strict=True) if not is_elastic(term)]
    nodes = {node.name: node for node in net.graph.nodes}
    static = {part.node: part.reason for part in net.static_parts}
    for value, label in sorted(rows, reverse=True)[:LISTED]:
        node = nodes[label]
        atoms = any(net.propagation.atoms(name) for name in node.inputs if name in net.graph.weights)
        free = "its widths could change, but it belongs to no block or stage that has a variable for them"
        tied = "its widths are tied to a static part, or to the image or the classes"
        table.add_row(f"{value / values.sum():.1%}".rstrip("%"), label, static.get(label, free if atoms else tied))
    return table


def _static_parts(parts: Sequence[StaticPart]) -> Table:
    """One row for each kind of operator and reason."""
    table = _table(f"Static parts ({len(parts)})", "number", "operator", "reason", "first", right=("number",))
    groups: dict[tuple[str, str], list[StaticPart]] = {}
    for part in parts:
        groups.setdefault((part.kind, _masked(part.reason)), []).append(part)
    for (kind, masked), group in sorted(groups.items(), key=lambda item: -len(item[1])):
        same = len({part.reason for part in group}) == 1
        table.add_row(str(len(group)), kind, group[0].reason if same else masked, group[0].node)
    return table


def _masked(reason: str) -> str:
    """A reason without its shapes and numbers, so that similar reasons are grouped together."""
    return re.sub(r"\d+(\.\d+)?", "N", re.sub(r"\[[\d, ]+\]", "[...]", reason))


@dataclass(frozen=True)
class _Run:
    prefix: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.prefix}{self.first}" + (f"-{self.last}" if self.last > self.first else "")


def _names(names: Iterable[str]) -> str:
    """Names with consecutive numbers joined, in order: ``block1-3, block7``."""
    runs: list[_Run | str] = []
    for name in names:
        match = re.fullmatch(r"(\D+)(\d+)", name)
        if match is None:
            runs.append(name)
            continue
        prefix, number = match.group(1), int(match.group(2))
        last = runs[-1] if runs else None
        if isinstance(last, _Run) and (last.prefix, last.last + 1) == (prefix, number):
            runs[-1] = _Run(prefix, last.first, number)
        else:
            runs.append(_Run(prefix, number, number))
    return ", ".join(str(run) for run in runs)


def _times(shape: Shape) -> str:
    return " x ".join(str(size) for size in shape)


def _count(value: int) -> str:
    """An exact count, followed by its order of magnitude where the count is long."""
    return f"{value:,}" if value < 10**7 else f"{value} ({magnitude(value)})"


def magnitude(value: int) -> str:
    """A count with three digits; its order of magnitude alone where no float holds it."""
    return f"{value:.3g}" if value < 10**308 else f"1e+{int(math.log10(value))}"
