"""Code that a computation depends on: which files it can run, and what each of them means.

A result has to be computed again when code that it came from changes. What that code is follows from the imports
(``closure``), and a file counts by what it says (``meaning``): its comments, layout and docstrings do not matter.
"""

from autotailor.code.closure import Code, changed_modules
from autotailor.code.meaning import meaning
from autotailor.code.workflow import modules_digest, rule_code, rule_modules

__all__ = ["Code", "changed_modules", "meaning", "modules_digest", "rule_code", "rule_modules"]
