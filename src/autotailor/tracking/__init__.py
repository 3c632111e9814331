"""Tracking with MLflow: experiment = model, parent run = (model, device, configuration), child run = rule.

Importing and opening MLflow takes seconds, and several processes that open a fresh store at once crash in its
migrations. So rules only append lines to a journal of their own (``journal``), and one *recorder* process, started
before the first rule, creates the store and the parent run and then writes what the journals say (``recorder``,
``reader``, ``store``). Journals that a crash left behind are written by the next recorder. What identifies a device
or a user is not told (``private``); nothing is sent anywhere (``store``, ``ui``); a store that was moved finds its
artifacts again (``anchors``).
"""

from autotailor.tracking.journal import Child, RunKey, child, git_commit
from autotailor.tracking.private import public
from autotailor.tracking.recorder import start, stop

__all__ = ["Child", "RunKey", "child", "git_commit", "public", "start", "stop"]
