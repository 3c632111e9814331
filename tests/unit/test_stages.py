"""The descriptions of the stages, held against the workflow."""

from pathlib import Path

import pytest

from autotailor.stages import STAGES, WRITER, before, kept_with

WORKFLOW = Path(__file__).parents[2] / "workflow"
TO_SEARCH = (
    *("pretrain", "compile", "moments", "distil", "finetune"),
    *("sensitivity", "enumerate", "heads", "profile", "validate", "screen", "search"),
)


def test_each_stage_has_a_script_and_each_script_a_stage() -> None:
    assert {path.stem for path in (WORKFLOW / "scripts").glob("*.py")} == {*STAGES, "stage"}


def test_each_input_is_written_by_an_earlier_stage_and_each_file_by_one() -> None:
    order = list(STAGES)
    for number, stage in enumerate(STAGES.values()):
        known = {*order[:number], "compare"}  # the report shows a comparison that was asked for before
        assert {WRITER[file].name for file in stage.inputs} - {*known, "fleet"} == set() or stage.of == "fleet"
    assert len(WRITER) == sum(len(stage.outputs) for stage in STAGES.values())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pretrain", ()),
        ("finetune", TO_SEARCH[:4]),
        ("profile", ("pretrain", "compile", "enumerate", "heads")),
        ("train_pool", TO_SEARCH),
        ("polish", (*TO_SEARCH, "confirm")),
    ],
)
def test_what_a_stage_depends_on_follows_from_its_inputs(name: str, expected: tuple[str, ...]) -> None:
    assert before(name) == kept_with(name) == expected


def test_a_comparison_is_kept_with_the_trainings_alone() -> None:
    assert kept_with("compare") == TO_SEARCH[:5] != before("compare")
