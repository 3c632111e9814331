"""The last mile: SubNets trained for a few epochs with weights of their own, before they are exported.

Weights that all SubNets share are a compromise. A SubNet that keeps training alone, taught by the largest SubNet or by
the original network, gives the compromise up (Once-for-All calls this fine-tuning of a specialised network; Cai et al.,
2020).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.finetuning.polishing.config import PolishConfig, Round
    from autotailor.finetuning.polishing.files import Exported, read_exported, write_exported
    from autotailor.finetuning.polishing.race import Polished, polish

__getattr__ = attach(__name__)
