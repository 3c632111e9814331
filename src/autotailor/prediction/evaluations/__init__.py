"""Evaluated SubNets: their answers and losses image by image, and what a fit reads of them."""
