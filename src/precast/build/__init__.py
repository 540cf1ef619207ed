"""Ties the steps together: a family and targets to a pack and a library."""
