"""Tasks: what is right, how far, what is learnt, and what is reported.

The names below are imported on first use, because a report needs the name of a score and no PyTorch
(``autotailor.lazy``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.task.errors import TaskError
    from autotailor.task.interface import Asked, Judgement, Lesson, Task
    from autotailor.task.registry import find, names, of, of_section, register, score, score_of
    from autotailor.task.scores import Score

__getattr__ = attach(__name__)
