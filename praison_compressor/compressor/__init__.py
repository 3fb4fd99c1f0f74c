"""The way of one request: parse -> project -> plan -> write -> commit -> result.

- `context_compressor`: `ContextCompressor`, the public face; turns to which nothing has to be done
- `call`: parse: the messages, options and budget of one request
- `projection`: project: the transcript along its session's ledger; plan: what it lacks
- `pipeline`: carries a request out, one compression of a session at a time; commits
- `writing`: write: the texts that a plan asks for, by a model or without one
- `result`: what comes back
- `sessions`: what is remembered of sessions between turns, bounded in one place
- `background`: leases across processes, and work off the request path
- `preview`: what a compression would do, without doing it
- `telemetry`: spans and metrics where OpenTelemetry is installed
"""
