"""The paper's search spaces (Table 3), from the configurations of ``conf/model``: exact counts."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import autotailor
from autotailor import config
from autotailor.compiler.sources.network import create_network

CONF = Path(__file__).parents[4] / "conf"
ALL_DEPTHS = tuple(range(12))


def compiled(name: str) -> autotailor.SuperNet:
    """A configured network with random weights: only its structure matters here."""
    model: dict[str, Any] = config.compose(CONF, name, "host")["model"]
    network = create_network(model["source"], pretrained=False)
    return autotailor.compile(network, model["space"], name=name, resolution=model["resolution"])


def variants_left(choices: int, blocks: int, removed: tuple[int, ...] = (0, 1, 2)) -> int:
    """Distinct variants of a stage: the choices of the blocks that each depth leaves."""
    return sum(choices ** (blocks - r) for r in removed)


def stages(choices: int, *blocks: int) -> int:
    """Distinct variants of several stages with depths 0 to 2."""
    return math.prod(variants_left(choices, n) for n in blocks)


slow = pytest.mark.sweep
CASES = [
    pytest.param(
        "resnet50", {"Bottleneck": 16}, 100, 3**16 * 3**4 * 3**5 * 25, 3**5 * 25 * stages(3, 3, 4, 6, 3), 1.14e12,
        id="resnet50",
    ),
    pytest.param(
        "mobilenetv2", {"InvertedResidual": 16, "DepthwiseSeparable": 1}, 85, 3**16 * 3**4 * 25,
        25 * 3 ** (2 + 1) * stages(3, 3, 4, 3, 3), 4.68e9, id="mobilenetv2",
    ),
    pytest.param(
        "mobilenetv3_ofa", {"InvertedResidual": 20, "DepthwiseSeparable": 1}, 160, 9**20 * 3**5 * 25,
        25 * stages(9, 4, 4, 4, 4, 4), 5.44e20, id="mobilenetv3_ofa",
    ),
    pytest.param(
        "proxylessnas", {"InvertedResidual": 21, "DepthwiseSeparable": 1}, 166, 9**21 * 3**5 * 25,
        25 * 9 * stages(9, 4, 4, 4, 4, 4), 4.90e21, id="proxylessnas",
    ),
    pytest.param(
        "convnext_tiny", {"ConvNeXtBlock": 18}, 157, 9**18 * 3**4 * 3**4 * 25,
        25 * 3**4 * stages(9, 3, 3, 9, 3), 4.84e20, id="convnext_tiny",
        marks=slow,
    ),
    pytest.param(
        "vit_base", {"TransformerBlock": 12}, 103, 7**12 * 12 * 7, 7 * variants_left(7, 12, ALL_DEPTHS), 1.13e11,
        id="vit_base", marks=slow,
    ),
    pytest.param(  # the paper counts 324 modifications and 1e45 variants, and does not list its blocks
        "levit", {"InvertedResidual": 15, "DepthwiseSeparable": 2, "TransformerBlock": 23}, 331,
        33 * (4 * 5 * 5 * 6**3) * (3 * 5 * 4 * 6 * 10 * 11) * 8**11 * 12**23,
        33 * (3 * 5 * 4 * 6 * 10 * 11) * variants_left(8, 5, ALL_DEPTHS[:4]) * variants_left(8, 6, ALL_DEPTHS[:5])
        * variants_left(12, 5, ALL_DEPTHS[:5]) * variants_left(12, 6, ALL_DEPTHS[:6]) ** 3, None,
        id="levit", marks=slow,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "blocks", "modifications", "variants", "distinct", "published"), CASES)
def test_counts(
    name: str, blocks: dict[str, int], modifications: int, variants: int, distinct: int, published: float | None
) -> None:
    net = compiled(name)
    space = net.space
    print(f"{name}: {space.num_modifications} modifications, {space.num_variants:.4g} variants, {space.num_distinct}")
    assert Counter(block.kind for block in net.blocks) == blocks
    assert not space.merged
    assert not net.static_parts
    assert (space.num_modifications, space.num_variants, space.num_distinct) == (modifications, variants, distinct)
    assert published is None or distinct == pytest.approx(published, rel=5e-3)


def test_every_network_of_the_paper_has_a_case() -> None:
    """The configurations that read ImageNet are the paper's."""
    names = [n for n in config.options(CONF, "model") if config.compose(CONF, n, "host")["data"]["name"] == "imagenet"]
    assert sorted(names) == sorted(str(case.values[0]) for case in CASES)


def test_the_configuration_of_resnet50_is_short() -> None:
    assert len((CONF / "model" / "resnet50.yaml").read_text().splitlines()) <= 12
