"""Recipes: how much a run trains, evaluates and measures, by factors of the other sections (``conf/recipe``)."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any

from autotailor.config.names import ConfigError
from autotailor.sections import Section as Parameters
from autotailor.values import Bound, Natural

Factor = Annotated[float, Bound(ge=0.01)]
Section = dict[str, Any]
LEAST_ROUNDS = 2
"""Of measuring: one round has no standard error."""


class Recipe(Parameters, of="recipe", error=ConfigError):
    """Factors of numbers of the configuration; a number above 0 stays above 0, and two rounds stay two.

    Attributes:
        name: name of the file in ``conf/recipe``, for people.
        training: factor of the epochs and images of ``distil``, ``finetune``, its stages, ``polish.joint`` and
            ``polish.rounds``.
        evaluations: factor of ``sensitivity.evaluations`` and ``search.evaluations``.
        candidates: factor of ``search.candidates``, and of the candidates in ``polish.rounds``.
        measuring: factor of ``device.min_minutes``, ``validate.subnets``, ``validate.rounds``, ``confirm.rounds``,
            ``measure.rounds`` and ``sensitivity.validate_subnets``.
        images: highest number of ``sensitivity.images``. 0 sets none.
        calibration: highest number of training images for the statistics of BatchNorm of each SubNet
            (``finetune.calibration.images``), which take most of the time of an evaluation where validation pictures
            are few. 0 sets none.
    """

    name: str = "default"
    training: Factor = 1.0
    evaluations: Factor = 1.0
    candidates: Factor = 1.0
    measuring: Factor = 1.0
    images: Natural = 0
    calibration: Natural = 0

    def apply(self, config: Section, named: Collection[str]) -> Section:
        """The configuration with other numbers; keys that the user names stay.

        Args:
            config: as composed.
            named: dotted keys that overrides change.
        """
        factors = {
            **dict.fromkeys(("distil.images", "finetune.epochs", "polish.joint.epochs"), self.training),
            **dict.fromkeys(("sensitivity.evaluations", "search.evaluations"), self.evaluations),
            "search.candidates": self.candidates,
            **dict.fromkeys(("device.min_minutes", "validate.subnets"), self.measuring),
            "sensitivity.validate_subnets": self.measuring,
            **dict.fromkeys(("validate.rounds", "confirm.rounds", "measure.rounds"), self.measuring),
        }
        for key, factor in factors.items():
            if key not in named:
                least = LEAST_ROUNDS if key.endswith(".rounds") else 1
                config = _changed(config, key.split("."), lambda value, by=factor, to=least: _scaled(value, by, to))
        for section, key in (("polish", "rounds"), ("finetune", "stages")):
            if f"{section}.{key}" not in named:
                config = _changed(config, [section, key], self._rounds)
        if self.images and "sensitivity.images" not in named:
            config = _changed(config, ["sensitivity", "images"], lambda n: min(n or self.images, self.images))
        if self.calibration and "finetune.calibration.images" not in named:
            for section in ("finetune", "polish"):  # that of polish is a copy
                config = _changed(config, [section, "calibration", "images"], lambda n: min(n, self.calibration))
        return config

    def _rounds(self, rounds: Any) -> Any:
        factors = {"candidates": self.candidates, "epochs": self.training, "images": self.training}
        if not isinstance(rounds, list):
            return rounds  # refused later, with a message

        def scaled(each: Any) -> Any:
            if not isinstance(each, dict):
                return each
            return {key: _scaled(value, factors.get(key, 1.0)) for key, value in each.items()}

        return [scaled(each) for each in rounds]


def with_recipe(config: Section, named: Collection[str]) -> Section:
    """A composed configuration as its section ``recipe`` changes it; one without that section stays.

    Raises:
        ConfigError: a key of the section is unknown, or a value is out of range.
    """
    section = config.get("recipe")
    return Recipe.from_section(section).apply(config, named) if section else config


def _changed(config: Mapping[str, Any], keys: list[str], change: Any) -> Section:
    """A copy with another value at a place; the same where the place is not there."""
    first, *rest = keys
    if not isinstance(config.get(first), dict if rest else object) or first not in config:
        return dict(config)
    value = config[first]
    return {**config, first: _changed(value, rest, change) if rest else change(value)}


def _scaled(value: Any, factor: float, least: int = 1) -> Any:
    """A number times a factor; a whole number stays whole, and does not fall below the least.

    What is no number above 0 stays, and so does a whole number that is less than the least.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        return value
    return max(min(value, least), round(value * factor)) if isinstance(value, int) else value * factor
