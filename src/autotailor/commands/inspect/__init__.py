"""The command ``inspect``: shows the compiler's findings in a network as tables or as a configuration to edit."""

from autotailor.commands.inspect.command import add_command

__all__ = ["add_command"]
