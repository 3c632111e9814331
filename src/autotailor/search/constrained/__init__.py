"""The best SubNet under any set of constraints at once, as a mixed-integer linear program."""
