"""Settings that a user sets, corrects and sets again: what each is, and values of it."""

from __future__ import annotations

MATTERS = [
    ("port", ["8080", "9090", "7070"]),
    ("timeout", ["30s", "45s", "60s"]),
    ("version", ["3.10", "3.12", "3.11"]),
    ("config file", ["conf/dev.yaml", "conf/prod.yaml", "conf/test.yaml"]),
    ("endpoint", ["https://a.example.com/v1", "https://b.example.com/v2", "https://c.example/v"]),
    ("table", ["user_events", "audit_events", "raw_events"]),
    ("retry limit", ["5", "3", "7"]),
    ("price", ["1,000", "2,000", "1,500"]),
]
