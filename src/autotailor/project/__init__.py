"""Where a user works, and where what belongs to autotailor lies: the workflow, its configuration, the runner's sources.

In a clone these lie beside ``src``. The build of a wheel (``setup.py``) puts them into the package, below ``share``. A
user's own project is a folder with ``conf``, ``models`` and ``photos``, in which the workflow writes its results.
"""
