"""Rewrites that bring the different forms in which exporters write one operation into a single form."""
