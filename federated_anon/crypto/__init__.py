"""Identities, the key that only holders share, and what is derived from it."""
