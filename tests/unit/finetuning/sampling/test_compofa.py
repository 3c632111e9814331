"""CompOFA: the dimensions of a stage move together."""

import numpy as np

import autotailor
from sampling_strategies import make


def test_compofa_moves_the_dimensions_of_a_stage_together(resnet_net: autotailor.SuperNet) -> None:
    strategy = make("compofa", resnet_net, 200)
    stages = {}
    for subnet in strategy.draw(0.0, np.random.default_rng(0)):
        for stage, blocks in (("stage1", ("block1", "block2")), ("stage2", ("block3", "block4"))):
            kept = [subnet[f"{b}.expand_ratio"] for b in blocks[:1]]
            stages.setdefault(stage, set()).add((subnet[f"{stage}.width"], subnet[f"{stage}.depth"], *kept))
    for combinations in stages.values():
        assert 2 <= len(combinations) <= 3  # three levels instead of 3 * 2 * 3 combinations
        ordered = sorted(combinations)
        assert [c[1] for c in ordered] == sorted((c[1] for c in ordered), reverse=True)
        assert [c[2] for c in ordered] == sorted(c[2] for c in ordered)
