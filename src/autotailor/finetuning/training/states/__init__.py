"""States of a training: the last one as a checkpoint, the best one, and the average of all."""
