"""From a requested search space to variables, and back to the section that a person would write."""
