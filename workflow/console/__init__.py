"""What a run shows: one display on a terminal, plain lines elsewhere.

``attach`` puts a handler in the place of Snakemake's own one. Snakemake's interface for loggers (``--logger``) wants an
installed package for each, and the published one (snakemake-logger-plugin-rich) shows the jobs of a run, but neither
what a running job is doing nor the time that is left. Snakemake's own output stays with ``--verbose``, for dry runs and
for everything that runs no rule.
"""

from console.handler import attach

__all__ = ["attach"]
