import pytest
import yaml

import documents
from autotailor.config.run import SpaceConfig
from autotailor.exits.answers import ExitError
from autotailor.exits.config import ExitsConfig
from autotailor.exits.guarantee import Guarantee


def test_the_guides_section_is_read() -> None:
    written = documents.blocks(documents.ROOT / "docs" / "guides" / "exits.md")
    (block,) = (b for b in written if b.language == "yaml" and "exits: {" in b.code)
    space = SpaceConfig.from_section(yaml.safe_load(block.code)["model"]["space"])
    assert space.exits == ExitsConfig(after=("stage2", "stage3"))
    assert space.exits.guarantee == Guarantee(0.01, 0.05)


@pytest.mark.parametrize("after", [[], ["stage1"] * 2, [f"stage{n}" for n in range(1, 6)]])
def test_one_to_four_different_places_are_taken(after: list[str]) -> None:
    with pytest.raises(ExitError, match=r"exits.after: expected one to 4 different stages or blocks, not \["):
        ExitsConfig.from_section({"after": after})


def test_an_unknown_head_is_refused() -> None:
    with pytest.raises(ExitError, match=r"head: unknown head 'ful'; known are probe, full. Did you mean 'full'"):
        ExitsConfig.from_section({"after": ["stage1"], "head": "ful"})
