"""Composes the configuration in ``conf/`` with Hydra, and checks it before any work.

The names below are imported on first use, see ``autotailor.lazy``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.config.checks import check, check_accelerators, check_compilers, check_device, check_files
    from autotailor.config.cluster import COMPUTED_WITH, Cluster, Job
    from autotailor.config.command_line import CommandLine
    from autotailor.config.composition import compose
    from autotailor.config.errors import ConfigError
    from autotailor.config.licences import check_licences
    from autotailor.config.matrix import Matrix, Pair, split_names
    from autotailor.config.named_code import check_named_code, fetch_teachers
    from autotailor.config.names import conf_folder, find_file, groups, options
    from autotailor.config.overrides import split_overrides
    from autotailor.config.run import RunConfig, validate

__all__ = [
    "COMPUTED_WITH",
    "Cluster",
    "CommandLine",
    "ConfigError",
    "Job",
    "Matrix",
    "Pair",
    "RunConfig",
    "check",
    "check_accelerators",
    "check_compilers",
    "check_device",
    "check_files",
    "check_licences",
    "check_named_code",
    "compose",
    "conf_folder",
    "fetch_teachers",
    "find_file",
    "groups",
    "options",
    "split_names",
    "split_overrides",
    "validate",
]

_HOMES = {
    "COMPUTED_WITH": "autotailor.config.cluster",
    "Cluster": "autotailor.config.cluster",
    "Job": "autotailor.config.cluster",
    "check_licences": "autotailor.config.licences",
    "CommandLine": "autotailor.config.command_line",
    "ConfigError": "autotailor.config.errors",
    "Matrix": "autotailor.config.matrix",
    "Pair": "autotailor.config.matrix",
    "RunConfig": "autotailor.config.run",
    "check": "autotailor.config.checks",
    "check_accelerators": "autotailor.config.checks",
    "check_compilers": "autotailor.config.checks",
    "check_device": "autotailor.config.checks",
    "check_files": "autotailor.config.checks",
    "check_named_code": "autotailor.config.named_code",
    "compose": "autotailor.config.composition",
    "conf_folder": "autotailor.config.names",
    "fetch_teachers": "autotailor.config.named_code",
    "find_file": "autotailor.config.names",
    "groups": "autotailor.config.names",
    "options": "autotailor.config.names",
    "split_names": "autotailor.config.matrix",
    "split_overrides": "autotailor.config.overrides",
    "validate": "autotailor.config.run",
}
__getattr__ = attach(__name__, _HOMES)
