"""The families that precast ships, each laid out like a user's own."""
