from autotailor.ir.blocks.block import templates
from autotailor.ir.blocks.kinds import BRANCH, PLAIN, kinds


def test_the_kinds_are_those_of_the_registered_templates_and_of_blocks_without_one() -> None:
    own = {template.kind for template in templates() if type(template).__module__.startswith("autotailor.")}
    assert kinds() == own | {BRANCH, PLAIN}
