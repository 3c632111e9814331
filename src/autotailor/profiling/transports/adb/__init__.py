"""The transport ``adb``: Android devices and boards with an ADB daemon, over USB or the network."""
