"""The exam: can a reader go on from a view? `python -m tests.benchmarks.exam --help`."""
