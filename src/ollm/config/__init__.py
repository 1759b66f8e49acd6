"""Settings and where they come from; the only place that reads the process environment."""
