"""What space.json says is what the SuperNet is."""

import json

import autotailor
from autotailor.ir.description import describe
from autotailor.ir.supernet import SuperNet
from onnx_text import HEAD
from text_graphs import graph_of


def test_the_description_is_that_of_the_network(any_net: autotailor.SuperNet) -> None:
    said = json.loads(json.dumps(describe(any_net)))
    space = any_net.space
    assert (said["network"], said["input_shape"], said["classes"]) == (any_net.name, [1, 3, 32, 32], 5)
    assert said["modifications"] == sum(len(variable["choices"]) for variable in said["variables"])
    assert (int(said["variants"]), int(said["distinct_variants"])) == (space.num_variants, space.num_distinct)
    largest = {variable["name"]: variable["default"] for variable in said["variables"]}
    assert autotailor.SubNet.from_assignment(space, largest) == any_net.largest()
    assert [name for stage in said["stages"] for name in stage["blocks"]] == [block["name"] for block in said["blocks"]]
    deepest = any_net.elastic.removed(any_net.smallest())
    assert {block["name"] for block in said["blocks"] if block["removable"]} == {block.name for block in deepest}
    assert said["static_parts"] == []


def test_what_is_static_says_why() -> None:
    net = SuperNet.of(graph_of(f"a = Conv (x, k)  t = Atan (a)  {HEAD}", k=(4, 3, 1, 1), fc=(5, 4)), {})
    (part,) = describe(net)["static_parts"]
    assert (part["kind"], part["reason"]) == ("Atan", "no rule for Atan")
