"""What a device says about its hardware, as facts of the fingerprint."""

from __future__ import annotations

from typing import Any


def parse(text: str) -> dict[str, Any]:
    """Facts from lines ``name=value``; the last value of a name counts.

    Args:
        text: what ``scripts.FACTS`` printed.

    Returns:
        ``machine``, ``system``, ``cpu``, ``cores``, ``memory_gb``, and where the device tells them ``model``, ``soc``,
        ``os``, ``caches``, and ``frequencies_mhz`` (the highest of each core).
    """
    said = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and value.strip():
            said[name] = value.strip()
    parts, khz, memory = said.pop("parts", ""), said.pop("khz", ""), said.pop("memory_kb", "")
    facts: dict[str, Any] = dict(said)
    facts["cpu"] = said.get("cpu") or " ".join(parts.split()) or said.get("machine", "unknown")
    facts["cores"] = int(said.get("cores", 0)) or None
    if khz:
        facts["frequencies_mhz"] = [int(value) // 1000 for value in khz.split()]
    if memory:
        facts["memory_gb"] = round(int(memory) / 2**20, 1)
    return facts
