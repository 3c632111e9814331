"""Tracking with MLflow: experiment = model, parent run = (model, device, configuration), child run = rule.

Importing and opening MLflow takes seconds, several processes that open a new store at once crash in its migrations,
and a server may be away. Therefore each rule only appends lines to its own journal (``journal``, ``system``). One
*recorder* process, started before the first rule, writes the journals into a SQLite store or to a server (``address``,
``recorder``, ``reader``): runs, metrics and files (``store``), datasets (``inputs``), and the exported SubNets as
registered models (``models``). The next recorder writes journals that a crash or a server that was away left behind.
Facts that identify a device or a user are left out (``public``), no data are sent anywhere else (``address``, ``ui``),
and a store that was moved finds its artifacts again (``anchors``).
"""

from autotailor.tracking.address import TrackingError
from autotailor.tracking.journal import Child, Dataset, ExportedModel, RunKey, child, git_commit, public
from autotailor.tracking.recorder import start, stop
from autotailor.tracking.system import watched

__all__ = [
    "Child",
    "Dataset",
    "ExportedModel",
    "RunKey",
    "TrackingError",
    "child",
    "git_commit",
    "public",
    "start",
    "stop",
    "watched",
]
