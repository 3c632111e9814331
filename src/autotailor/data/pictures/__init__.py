"""Pictures of one's own: how a folder is laid out, how files are read, what is refused."""
