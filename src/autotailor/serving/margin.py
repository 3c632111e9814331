"""What a call takes beside the time that the engine tells.

The engine answers at a deadline that it counts from its own begin. What the caller spends before and behind it, such as
converting a picture or reading a socket, is therefore kept away from the deadline.
"""

RAISED, LOWERED = 1.2, 1.2 ** (-1 / 199)
"""So that the margin suffices for 995 of 1000 calls, as ``Alarm`` of ``src/runner/serve/engine/anytime.h``."""
LARGEST_SHARE = 0.3
"""Of a deadline that the margin takes at most."""


class Margin:
    """Milliseconds that suffice for what 995 of 1000 calls take beside the engine.

    A call that takes longer raises them by a fifth, and 199 others lower them as far, so that a single interruption of
    many milliseconds says no more than one of few.
    """

    def __init__(self, beside_ms: float = 0.05) -> None:
        """``beside_ms``: what is taken until a call has been measured."""
        self._beside_ms = beside_ms

    def left(self, deadline_ms: float) -> float:
        """The engine's deadline, from that of the caller; what is no positive time stays for the engine to refuse."""
        return max(deadline_ms - self._beside_ms, (1 - LARGEST_SHARE) * deadline_ms) if deadline_ms > 0 else deadline_ms

    def took(self, call_ms: float, engine_ms: float) -> None:
        """Learns from a call and what the engine has told of it."""
        self._beside_ms *= RAISED if call_ms - engine_ms > self._beside_ms else LOWERED
