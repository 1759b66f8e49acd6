"""Models on this machine: files, downloads, and the embedded server."""
