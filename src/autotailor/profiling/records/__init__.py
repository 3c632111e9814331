"""What a device reports: batches of programs, lines of the runner, records, estimates with standard errors."""
