"""The variants that ``sampling.py`` compares: each is a file of conf/finetune with some values changed."""

from __future__ import annotations

ADAMW = ("finetune.optimizer=adamw_fused", "finetune.weight_decay=0.02")
TAUGHT_BY_THE_ORIGINAL = "finetune.teacher=null"
ONE = ("finetune=mixed", TAUGHT_BY_THE_ORIGINAL, *ADAMW)

TAUGHT_BY_THE_LARGEST = ("finetune=mixed", "finetune.teacher=largest", *ADAMW)
LARGER = ("model.space.resolution=[20,24,32]", "model.space.width=[0.25,0.5,0.75,1.0]")

VARIANTS: dict[str, tuple[str, ...]] = {
    "alternating": ("finetune=alternating", TAUGHT_BY_THE_ORIGINAL, *ADAMW),
    "one": ONE,
    "one 1:1:2": (*ONE, "finetune.sampling.smallest=0.25"),
    "one macs": (*ONE, "finetune.sampling.between=macs"),
    "one taught by the largest": TAUGHT_BY_THE_LARGEST,
    "one larger space": (*ONE, *LARGER),
    "one larger space taught by the largest": (*TAUGHT_BY_THE_LARGEST, *LARGER),
    "muon": (*TAUGHT_BY_THE_LARGEST, "finetune.optimizer=muon", "finetune.weight_decay=0.1"),
    "one 1:1:8": (*ONE, "finetune.sampling.largest=0.1", "finetune.sampling.smallest=0.1"),
}
"""Name to the overrides of the configuration. The first variant is the one that others are compared with.

All but ``muon``, the default of the embedded convolutional networks, are trained by AdamW.
A variant may have a larger space: it must offer all choices of the model's own space, whose SubNets are judged.
"""
