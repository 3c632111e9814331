"""One training loop for all kinds of training: checkpoints, interruption, precision, optimizers."""
