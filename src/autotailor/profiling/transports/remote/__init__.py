"""What all remote transports share: links, scripts, and the folders that runs have on a device."""
