"""Measuring: sessions on a device, the programs that they run, and the rule ``profile`` on top of both."""
