"""The tuning database: every measurement and what the correctness gate found, with where each came from."""
