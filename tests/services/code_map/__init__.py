"""Tests of the code map."""
