"""Searches that NSGA-II is compared with, and how near a front comes to the exact one."""
