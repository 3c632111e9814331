"""What pages of autotailor have in common: colours for light and dark, and charts that need no network."""
