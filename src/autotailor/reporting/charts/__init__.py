"""The figures of a run's report: what they show, as charts of Altair."""
