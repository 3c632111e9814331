"""Doctor: whether a device can be measured on, and what stands against it."""

from autotailor.commands.doctor.command import add_command

__all__ = ["add_command"]
