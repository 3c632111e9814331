"""What a device says about its hardware, as facts of the fingerprint."""

import re
from typing import Any


def parse(text: str) -> dict[str, Any]:
    """Reads facts from lines ``name=value``; the last value of a name counts.

    Args:
        text: what ``scripts.FACTS`` printed.

    Returns:
        ``machine``, ``system``, ``cpu``, ``cores``, ``memory_gb``, and, as far as the device tells, ``model``, ``soc``,
        ``os``, ``caches`` and ``frequencies_mhz`` (the highest frequency of each core).
    """
    said = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and value.strip():
            said[name] = value.strip()
    parts, khz, memory = said.pop("parts", ""), said.pop("khz", ""), said.pop("memory_kb", "")
    facts: dict[str, Any] = dict(said)
    facts["cpu"] = said.get("cpu") or " ".join(parts.split()) or said.get("machine", "unknown")
    facts["cores"] = next(iter(_numbers(said.get("cores", ""))), 0) or None
    if frequencies := _numbers(khz):
        facts["frequencies_mhz"] = [value // 1000 for value in frequencies]
    if kilobytes := _numbers(memory):
        facts["memory_gb"] = round(kilobytes[0] / 2**20, 1)
    return facts


def _numbers(text: str) -> list[int]:
    """The words of a text that are whole numbers."""
    return [int(word) for word in re.findall(r"(?<!\S)[0-9]{1,18}(?!\S)", text)]
