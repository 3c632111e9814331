"""A pool that runs within this process: engine, sensors, settings, metrics, and the service that joins them."""
