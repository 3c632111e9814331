"""The machine that is measured: processor, clocks, temperatures, cooling, and the lock of the device."""
