"""Progress bars on a terminal, which also go into the record of the running rule."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from autotailor.progress.recorder import step

Item = TypeVar("Item")


class Progress(RichProgress):
    """Rich's progress bars; each advance is also the step of the running rule."""

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        super().advance(task_id, advance)
        self._tell(task_id)

    def update(self, task_id: TaskID, **changes: Any) -> None:  # type: ignore[override]
        super().update(task_id, **changes)
        self._tell(task_id)

    def stop(self) -> None:
        """Ends the bars. Where there is no terminal, rich leaves an empty line in the place of transient bars."""
        if self.live.transient and not self.console.is_interactive:
            self.live.stop()
        else:
            super().stop()

    def _tell(self, task_id: TaskID) -> None:
        task = self._tasks.get(task_id)
        if task is not None and not self.disable:
            total = "" if task.total is None else f" of {task.total:,.0f}"
            left = task.time_remaining
            ahead = f", {timedelta(seconds=round(left))} left" if left and not task.finished else ""
            step(f"{task.description} {task.completed:,.0f}{total}{ahead}")


def track(
    sequence: Iterable[Item] | Sequence[Item], description: str, total: float | None = None, transient: bool = False
) -> Iterator[Item]:
    """Iterates with a progress bar.

    Args:
        sequence: what is iterated over.
        description: of the loop.
        total: number of items; the length of the sequence when None.
        transient: whether the bar vanishes at its end.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=transient) as progress:
        yield from progress.track(sequence, total=total, description=description)
