"""Parts of ``fronts.py``: runs, budgets, the networks of the controls, their trainings, tables and figures."""
