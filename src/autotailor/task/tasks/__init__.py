"""All tasks, one file for each."""
