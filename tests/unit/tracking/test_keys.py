"""Keys that MLflow refuses are mapped to keys that it takes."""

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st
from mlflow.utils.validation import MAX_ENTITY_KEY_LENGTH, _validate_param_name

from autotailor.tracking.keys import legal


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=400))
def test_mlflow_takes_every_mapped_key(key: str) -> None:
    name = legal(key)
    _validate_param_name(name)
    assert len(name) <= MAX_ENTITY_KEY_LENGTH


@settings(max_examples=300, deadline=None)
@given(st.text("ax_05FD*./%", min_size=1, max_size=30))
@example("_x0000/")
@example("_x0000%")
@example("_x0000/a")
def test_a_mapped_key_can_be_read_back(key: str) -> None:
    assert re.sub(r"_x([0-9A-F]{4})_", lambda code: chr(int(code[1], 16)), legal(key)) == key
