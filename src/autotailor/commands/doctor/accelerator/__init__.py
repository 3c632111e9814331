"""The command ``doctor --accelerator``: runs each part of training and evaluation once where networks are computed."""
