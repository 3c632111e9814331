"""Early exits: heads behind stages, thresholds chosen exactly, and files that stop where they are sure."""
