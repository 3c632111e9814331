"""What a running rule is doing, in a file beside its log: for the console and for ``autotailor status``."""

from autotailor.progress.record import Record, read_record, record_of
from autotailor.progress.recorder import begin, step

__all__ = ["Record", "begin", "read_record", "record_of", "step"]
