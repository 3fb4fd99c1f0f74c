"""Whether rules outlive compression, and only those that bind: see `__main__`."""
