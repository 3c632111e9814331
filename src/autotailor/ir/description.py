"""What ``space.json`` says about a SuperNet."""

from typing import Any

from autotailor.ir.supernet import SuperNet


def _outputs(net: SuperNet) -> dict[str, list[int]]:
    """Meta shape of each output, by name."""
    return {name: list(shape) for name, shape in zip(net.graph.outputs, net.output_shapes, strict=True)}


def describe(net: SuperNet) -> dict[str, Any]:
    """Counts, variables, blocks, stages, and static parts with their reasons, as plain data."""
    space = net.space
    return {
        "network": net.name,
        "input_shape": list(net.input_shape),
        **({"classes": net.num_classes} if net.num_classes else {"outputs": _outputs(net)}),
        "final_activation": net.head.activation or None,
        "modifications": space.num_modifications,
        "variants": str(space.num_variants),
        "distinct_variants": str(space.num_distinct),
        "variables": [
            {"name": v.name, "kind": v.kind, "choices": list(v.choices), "default": v.choices[v.default]} for v in space
        ],
        "merged_choices": [{"variable": v, "choice": c, "same_as": same} for v, c, same in space.merged],
        "blocks": [
            {"name": b.name, "kind": b.kind, "operators": len(b.nodes), "removable": b.name in net.elastic.gates}
            for b in net.blocks
        ],
        "stages": [{"name": s.name, "blocks": [b.name for b in s.blocks]} for s in net.stages],
        "static_parts": [{"node": p.node, "kind": p.kind, "reason": p.reason} for p in net.static_parts],
    }
