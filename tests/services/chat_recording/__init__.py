"""Tests of the recording of sessions, module by module."""
