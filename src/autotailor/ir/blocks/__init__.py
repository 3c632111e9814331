"""Blocks and stages: regions of the trunk, templates that recognise them, and handles that variables set."""
