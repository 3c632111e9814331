"""Accuracy of SubNets: evaluation, recalibration, statistics, and the journal of evaluations."""
