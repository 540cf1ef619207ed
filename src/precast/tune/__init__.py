"""Measuring candidates and deciding what to measure next."""
