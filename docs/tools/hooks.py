"""Hooks of MkDocs: equations become MathML while the site is built, so that nothing has to be fetched to show them.

A fence named ``math`` holds LaTeX, which GitHub shows as an equation, too.
"""

from __future__ import annotations

from typing import Any

import latex2mathml.converter
from mkdocs.config.defaults import MkDocsConfig

SUPERFENCES = "pymdownx.superfences"


def equation(source: str, *_: object, **__: Any) -> str:
    """The MathML of one fenced equation, as pymdownx.superfences asks for it."""
    return f'<div class="equation">{latex2mathml.converter.convert(source.strip(), display="block")}</div>'


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Adds the fence ``math``."""
    fences = config.mdx_configs.setdefault(SUPERFENCES, {}).setdefault("custom_fences", [])
    fences.append({"name": "math", "class": "equation", "format": equation})
    return config
