"""Interfaces of other profilers, so that scripts change their import line only."""
