"""The command ``doctor``: checks whether a device is fit for measuring, and names what is wrong with it."""

from autotailor.commands.doctor.command import add_command

__all__ = ["add_command"]
