"""Checking kernels and libraries against references."""
