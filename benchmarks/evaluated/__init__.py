"""Parts of ``accuracy_predictor.py``: the evaluated SubNets, the predictors, and their scores."""
