"""Parts of ``latency_predictor.py``: networks, measurements, alternative predictors, and rows of the table."""
