"""What `latency_predictor.py` is made of: the networks, what is measured, the alternatives, the rows of the table."""
