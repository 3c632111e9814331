"""Records: the latencies that one visit of an operator or a network on a device has shown."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Record:
    """One visit of one operator or network: its latencies in one batch.

    Attributes:
        fingerprint: id of the device's fingerprint.
        key: operator id, or a network's id.
        blocks: latencies in milliseconds, one for each block of passes, without drift correction.
        anchor_ms: latency of the anchor operator in the same batch, in milliseconds.
        passes: how many passes the batch made.
        seconds: the visit's share of the batch's wall time.
        resident_weight_mb: weights of one copy as the runtime holds them, MiB; None where the runtime cannot tell.
        workspace_mb: scratch memory of one run besides outputs, MiB; None where the runtime cannot tell.
        energy_mj: energy of one run above idle, millijoules; None except in stores of earlier versions, because
            energy follows from the table ``powers``.
    """

    fingerprint: str
    key: str
    blocks: tuple[float, ...]
    anchor_ms: float
    passes: int
    seconds: float
    resident_weight_mb: float | None = None
    workspace_mb: float | None = None
    energy_mj: float | None = None

    def drift(self, usual_ms: float) -> float:
        """How far the anchor's latency was from its usual latency, relative to the usual one."""
        return abs(self.anchor_ms / usual_ms - 1)
