"""The rules of a whole run, in the order of the pipeline."""

from __future__ import annotations

STAGES = (
    *("pretrain", "compile", "finetune", "enumerate", "profile", "validate"),
    *("sensitivity", "search", "confirm", "export", "measure", "report"),
)
