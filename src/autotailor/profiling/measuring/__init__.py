"""Measuring: sessions on a device, the programs that a session runs, and the rule ``profile`` on top of both."""
