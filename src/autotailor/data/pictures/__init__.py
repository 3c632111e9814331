"""Pictures of the user: the layout of the folder, how files are read, and which files are refused."""
