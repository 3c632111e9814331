"""The page that compares networks and devices: one file that needs no other files and no network."""
