"""The best SubNet under any set of constraints at once, by column generation, and by branch and bound over cliques."""
