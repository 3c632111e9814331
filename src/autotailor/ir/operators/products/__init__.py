"""Matrix products, contractions and reductions."""
