"""One file for each kind of dataset; the registry imports them all."""
