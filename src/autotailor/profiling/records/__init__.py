"""What a device reports: batches of programs, events of the runner, records, estimates with standard errors."""
