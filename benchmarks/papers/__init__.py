"""The methods of other papers, run side by side (``benchmarks/methods.py``)."""
