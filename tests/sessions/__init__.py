"""What a run of the tests does beside running tests: it goes on where it stopped, and explains what it skipped."""
