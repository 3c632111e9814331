"""Runs short scripts on a device whose link may break. An action that fails for a moment is tried again."""

import logging
import re
import secrets
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_before_delay, wait_random_exponential

from autotailor.profiling.errors import DeviceError, TransientError, UnreachableError
from autotailor.profiling.transports.remote.link import Link, Patience

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class RemoteShell:
    """A POSIX shell on a device.

    Args:
        name: the device's name, for messages.
        link: how to reach the device.
        patience: how long to wait for the device.
    """

    def __init__(self, name: str, link: Link, patience: Patience) -> None:
        self.name = name
        self.link = link
        self.patience = patience
        self._answered = False

    def ask(self, script: str) -> str:
        """What a script prints, whatever its exit code is. The script must be safe to repeat."""
        return self.persist(partial(self.output, script))[1].decode(errors="replace")

    def checked(self, script: str, what: str) -> str:
        """What a script prints. The script must be safe to repeat.

        Args:
            script: the script.
            what: what the device cannot do if the script fails, for the message.

        Raises:
            DeviceError: the script ended with an exit code other than 0.
        """
        return self._successful(self.persist(partial(self.output, script)), what)

    def checked_once(self, script: str) -> str:
        """What a script prints. The script is tried once; DeviceError where it fails."""
        return self._successful(self.output(script), "a file cannot be written or read")

    def _successful(self, result: tuple[int, bytes], what: str) -> str:
        code, output = result
        text = output.decode(errors="replace")
        if code != 0:
            raise refusal(self.name, what, text)
        return text

    def output(self, script: str) -> tuple[int, bytes]:
        """Exit code and output of a script, which runs between two marks.

        A missing mark at the end shows that the answer was cut off. Text before the mark at the beginning was printed
        by the start-up files of a login shell and is dropped.
        """
        mark = secrets.token_hex(8)
        answer = self.link.shell(f"echo {mark}\n(\n{script}\n) 2>&1\nprintf '\\n%s %d\\n' {mark} $?\n")
        output, _, code = answer.partition(f"{mark}\n".encode())[2].rpartition(f"\n{mark} ".encode())
        if not re.fullmatch(rb"\d+\r?\n", code):
            raise TransientError(f"device {self.name}: an answer of {self.link.where} was cut off")
        return int(code), output

    def persist(self, action: Callable[[], Result]) -> Result:
        """Connects if needed, and performs an action; tries again with growing pauses while the device is away.

        Raises:
            UnreachableError: the device stayed away for longer than the patience lasts.
        """
        patience = self.patience.lost if self._answered else self.patience.first
        started = time.monotonic()
        retrying = Retrying(
            retry=retry_if_exception_type(TransientError),
            wait=wait_random_exponential(multiplier=self.patience.pause, max=5),
            stop=stop_before_delay(patience),
            before_sleep=self._say_waiting if self._answered else None,
            reraise=True,
        )
        try:
            result: Result = retrying(self.act, action)
            return result
        except TransientError as error:
            tried = f"tried {retrying.statistics['attempt_number']} times in {time.monotonic() - started:.0f} s"
            raise UnreachableError(f"{error} ({tried})") from error

    def act(self, action: Callable[[], Result]) -> Result:
        """Connects if needed, and performs an action once; raises TransientError where trying again can help."""
        try:
            if not self.link.is_open:
                self.link.open()
            result = action()
        except BaseException:  # a late answer to this action must not be taken for the answer to the next one
            self.link.close()
            raise
        self._answered = True
        return result

    def _say_waiting(self, state: RetryCallState) -> None:
        if state.attempt_number in (2, 8) and state.outcome is not None:
            logger.warning(
                "%s: trying again for up to %.0f s; connect the device again",
                state.outcome.exception(),
                self.patience.lost,
            )

    def attempt_once(self, script: str) -> None:
        """Runs a script that tidies up. A device that is away is left as it is, because the next run tidies, too."""
        try:
            self.act(partial(self.output, script))
        except DeviceError as error:
            logger.warning("%s: this run's folder stays on the device, and the next run removes it", error)


def refusal(device: str, what: str, reason: str) -> DeviceError:
    """The error for something that a device refused, with a remedy where the reason is a known one.

    Args:
        device: the device's name.
        what: what could not be done.
        reason: what the device said.
    """
    remedy = "see the device's own log"
    for words, helps in REMEDIES.items():
        if re.search(words, reason, re.IGNORECASE):
            remedy = helps
    return DeviceError(f"device {device}: {what}: {' '.join(reason.split()) or 'no reason given'}: {remedy}")


REMEDIES = {
    r"no such file": "does the file exist there, and is device.folder right?",
    r"not found": "the device lacks this command: install coreutils or toybox there",
    r"permission denied|not permitted": "set device.folder to a folder that its user may write to",
    r"read-only": "set device.folder to a folder on a writable file system",
    r"no space|quota": "no space is left on the device: remove something there, or set device.folder",
}
