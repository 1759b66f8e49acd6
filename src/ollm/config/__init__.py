"""Settings and their sources; the only place that reads the process environment."""
