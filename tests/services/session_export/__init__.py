"""Tests of the exports of a session, module by module."""
