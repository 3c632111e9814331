"""What stands behind ``--config``: keys that a run does not take itself are overrides, as for ``autotailor run``.

Snakemake ends in a traceback at a key with a dot before it reads a workflow. The workflow's profile
(``profiles/default``), which Snakemake reads earlier still, therefore calls ``take_overrides``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import snakemake.cli

from autotailor.commands.run import known_keys
from autotailor.config import split_overrides

_parse_config = snakemake.cli.parse_config


def parse_config(entries: Sequence[str] | None) -> dict[str, Any]:
    """Reads ``--config KEY=VALUE ...`` as Snakemake does; all overrides come under one key."""
    known = known_keys()
    config = _parse_config([entry for entry in entries or () if entry.partition("=")[0] in known])
    others = [entry for entry in entries or () if entry.partition("=")[0] not in known]
    if others:
        config["overrides"] = [*split_overrides(config.get("overrides") or []), *others]
    return config


def take_overrides() -> None:
    """Lets this process of Snakemake read its ``--config`` so."""
    snakemake.cli.parse_config = parse_config
