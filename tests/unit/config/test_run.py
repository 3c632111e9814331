"""The configuration of a run as one typed object, and what it refuses in the words of its user."""

import copy
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autotailor import AutoTailorError, config
from autotailor.config import ConfigError
from autotailor.config.run import UNREAD
from autotailor.finetuning import FinetuneConfig
from autotailor.sections import flatten

CONF = Path(__file__).parents[3] / "conf"
LIMITLESS = ("device.max_minutes", "device.drift", "profile.max_minutes")


@pytest.fixture(scope="module")
def composed() -> dict[str, Any]:
    return config.compose(CONF, "resnet_digits", "host", [])


def changed(composed: dict[str, Any], key: str, value: object) -> dict[str, Any]:
    """The configuration with another value; sections that it lacks are made."""
    changed = copy.deepcopy(composed)
    inner, (*sections, last) = changed, key.split(".")
    for section in sections:
        inner = inner.setdefault(section, {})
    inner[last] = value
    return changed


def numbers(composed: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """The keys of all numbers, and whether the number stands in a list."""
    for key, value in flatten(composed).items():
        first = value[0] if isinstance(value, list) and value else value
        if isinstance(first, int | float) and not isinstance(first, bool):
            yield key, isinstance(value, list)


def test_a_composed_run_is_one_object_of_the_sections_that_the_packages_read(composed: dict[str, Any]) -> None:
    run = config.validate(composed)
    assert run.finetune == FinetuneConfig.from_section(composed["finetune"])
    assert (run.model.space.divisor, run.validate.promise.share, run.cluster.name) == (4, 0.95, "local")


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_refused_by_the_name_of_their_key(composed: dict[str, Any], number: float) -> None:
    found = [*numbers(composed), ("finetune.panel.every", False), ("device.drift", False)]
    assert len(found) > 100
    for key, in_list in found:
        given = changed(composed, key, [number] if in_list else number)
        if key in LIMITLESS and number == math.inf:
            config.validate(given)
            continue
        with pytest.raises(ConfigError) as refused:
            config.validate(given)
        assert str(refused.value).startswith(f"conf: {key}{'.0' if in_list else ''} is {number}, but has to be a ")


@pytest.mark.parametrize("key", ["export.budgets", "polish.rounds"])
def test_nan_in_a_mapping_of_a_list_is_named(composed: dict[str, Any], key: str) -> None:
    given = changed(composed, key, [{"latency": 3}, {"latency": math.nan}])
    with pytest.raises(ConfigError, match=rf"{key}\.1\.latency is nan, but has to be a finite number$"):
        config.validate(given)


def test_what_a_function_of_the_user_or_a_runtime_reads_may_be_infinite(composed: dict[str, Any]) -> None:
    for key in UNREAD:
        config.validate(changed(composed, f"{key}.threshold", math.inf))


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("threads", "many", "threads: expected an integer >= 1, not 'many'"),
        ("thread", 1, "the configuration: unknown keys ['thread']; known are ['accelerator', "),
        ("model.sauce", "a", "model: unknown keys ['sauce']; known are ['batch_norm', "),
        ("model.sourc", "a", "Did you mean 'source'?"),
        ("model.output", -1, "model.output: expected a name, a position from 0, a list of them, or null, not -1"),
        ("model.batch_norm", "kept", "model.batch_norm: unknown batch_norm 'kept'; known are auto, reinsert, keep"),
        ("model.pretrain.lr", 0, "model.pretrain.lr: expected a rate above 0"),
        ("finetune.augmentation.erasing", 2, "finetune.augmentation.erasing: expected a number >= 0 and <= 1, not 2"),
        ("polish.epochs", 3, "polish.epochs: the epochs of each round stand in polish.rounds; remove epochs"),
        ("polish.rounds", [{"candidates": 1}], "polish.rounds.0: a round needs epochs, images or both"),
        ("accelerator", "gpu", "accelerator: unknown accelerator 'gpu'; known are auto, cpu, cuda, cuda:N, mps"),
        ("device", {"name": "a"}, "device.transport: expected a text, as the files of conf/device have it, not None"),
        ("device", {"name": "a", "cost": "macs", "threads": 1}, "device: unknown keys ['threads']; known are ['cost'"),
        ("finetune", {"epochs": 1}, "finetune: missing keys ['calibration']"),
        ("profile.store", "", "profile.store: expected the path of a folder, not ''"),
        ("validate.promise.share", 1.5, "validate.promise.share: expected a number >= 0 and <= 1, not 1.5"),
        ("validate.rounds", 1, "validate.rounds: expected 2 to 100 rounds (one has no standard error), not 1"),
        # ``1e3`` of the command line is a float, and the rules would count with it after hours of work.
        ("validate.attempts", 2.0, "validate.attempts: expected an integer >= 1 and <= 10, not 2.0"),
        ("compare.seeds", [1.0], "compare.seeds.0: expected an integer >= 0, not 1.0"),
        ("compare.seeds", [1, 1], "compare.seeds: [1, 1] lists a value twice"),
        ("export.budgets", 3.0, "export.budgets: expected a whole number from 1 to 99 or a list of budgets, not 3.0"),
        ("export.budgets", "50%", "not '50%'; a single value stands in a list as well: [\"50%\"]"),
        ("export.budgets", True, "or a list of budgets, not True"),
        ("export.budgets", [{}], "or a list of budgets, not [{}]"),
    ],
)
def test_what_cannot_be_used_is_told_by_its_key(composed: dict[str, Any], key: str, value: object, told: str) -> None:
    with pytest.raises(AutoTailorError) as refused:
        config.validate(changed(composed, key, value))
    assert told in str(refused.value)
