"""Tracking with MLflow: experiment = model, parent run = (model, device, configuration), child run = rule.

Importing and opening MLflow takes seconds, and several processes that open a new store at once crash in its
migrations. Therefore each rule only appends lines to its own journal (``journal``). One *recorder* process, started
before the first rule, creates the store and the parent run, and writes the journals into the store (``recorder``,
``reader``, ``store``). The next recorder writes journals that a crash left behind. Facts that identify a device or a
user are left out (``private``), no data are sent anywhere (``store``, ``ui``), and a store that was moved finds its
artifacts again (``anchors``).
"""

from autotailor.tracking.journal import Child, RunKey, child, git_commit
from autotailor.tracking.private import public
from autotailor.tracking.recorder import start, stop

__all__ = ["Child", "RunKey", "child", "git_commit", "public", "start", "stop"]
