"""Specialization, config and target to code object, without a GPU."""
