"""Composes the configuration in ``conf/`` with Hydra, and checks it before any work.

The names below are imported on first use, see ``autotailor.lazy``.
"""

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.config.checks import (
        check,
        check_accelerators,
        check_compilers,
        check_device,
        check_files,
        check_named_code,
        fetch_teachers,
    )
    from autotailor.config.cluster import Cluster, Job
    from autotailor.config.command_line import CommandLine
    from autotailor.config.composition import compose, split_overrides
    from autotailor.config.licences import check_licences
    from autotailor.config.matrix import Matrix, Pair, split_names
    from autotailor.config.names import ConfigError, conf_folder, find_file, groups, options
    from autotailor.config.run import RunConfig, validate

__getattr__ = attach(__name__)
