"""The code that a computation depends on: the files that it can run, and a hash of the meaning of each file.

A result has to be computed again when the code behind it changes. The files behind it follow from the imports
(``closure``). A file's hash covers its statements (``meaning``), but not its comments, layout and docstrings.
"""

from autotailor.code.closure import Code, changed_modules
from autotailor.code.factory import factory_content, modules_digest, rule_code, rule_modules
from autotailor.code.meaning import meaning

__all__ = ["Code", "changed_modules", "factory_content", "meaning", "modules_digest", "rule_code", "rule_modules"]
