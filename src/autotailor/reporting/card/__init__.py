"""The card of an export: ``README.md`` beside its files, for people who run the network without autotailor."""

from autotailor.reporting.card.page import write_card

__all__ = ["write_card"]
