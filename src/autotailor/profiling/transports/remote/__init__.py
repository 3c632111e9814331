"""What all remote transports share: links, scripts, and folders of runs on the device."""
