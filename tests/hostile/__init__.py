"""Hostile input: faulty transcripts, misbehaving models, attacks in content."""
