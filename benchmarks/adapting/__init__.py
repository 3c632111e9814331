"""Parts of ``runtime.py``: loads, recorded traces of all members, rivals that replay them, and live measures."""
