"""The way of one request: look -> plan -> write -> commit -> result.

- `context_compressor`: `ContextCompressor`, the public face; turns that only add to the last one
- `request`: `Request`: messages, options, budget and mode of one call
- `projection`: look: the view of a transcript by its session's ledger; plan: what the view lacks
- `pipeline`: the way itself, one compression of a session at a time
- `writing`: write: the texts that a plan asks for, and their segments; the hook before them
- `result`: `CompressResult`, and the event of a commit
- `sessions`: what is remembered of sessions between turns, bounded in one place
- `background`: leases across processes, and work off the request path
- `preview`: what a compression would do, without doing it
- `telemetry`: spans and metrics where OpenTelemetry is installed
"""
