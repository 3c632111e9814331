"""Parts of ``sampling.py``: the variants, the trainings, and the judgement of trained SuperNets."""
