"""The operators of a SubNet in a row."""

import random
from collections import Counter

import autotailor
from autotailor.profiling.runtimes.ncnn.fusion import NCNN_FUSION


def test_each_operator_reads_what_one_before_it_writes(any_net: autotailor.SuperNet) -> None:
    rng = random.Random(0)
    for subnet in (any_net.largest(), any_net.smallest(), *(any_net.sample(rng) for _ in range(5))):
        shapes = any_net.shapes(subnet)
        written = {any_net.graph.input}
        sequence = any_net.sequence(subnet, NCNN_FUSION)
        for operator in sequence:
            assert set(operator.inputs) <= written, operator.feature.kind
            assert tuple(shapes[name] for name in operator.inputs) == operator.feature.inputs
            assert tuple(shapes[name] for name in operator.outputs) == operator.feature.outputs
            written.update(operator.outputs)
        places = any_net.places(NCNN_FUSION)
        features = (place.feature(subnet) for place in places)
        assert Counter(o.feature for o in sequence) == Counter(f for f in features if f is not None)


def test_removed_blocks_are_read_around(resnet_net: autotailor.SuperNet) -> None:
    smallest = resnet_net.smallest()
    gone = {name for block in resnet_net.elastic.removed(smallest) for node in block.nodes for name in node.outputs}
    assert gone
    sequence = resnet_net.sequence(smallest, NCNN_FUSION)
    assert not gone & {name for operator in sequence for name in (*operator.inputs, *operator.outputs)}
