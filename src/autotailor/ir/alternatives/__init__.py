"""What blocks may have in place of their operators."""
