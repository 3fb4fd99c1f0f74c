"""Carry out one request in the steps look -> plan -> write -> commit -> result.

- `context_compressor`: `ContextCompressor`, the public interface; turns that only add messages
- `request`: `Request`: messages, options, budget and mode of one call
- `bills`: what a session cost, and what it had cost without us
- `clock`: whether the provider's cache is cold, and whether a compression pays
- `choices`: messages that a user keeps, ranges, and the draft of a preview
- `projection`: look: a transcript's view by its session's ledger; plan: the compression due
- `pipeline`: the steps in their order, one compression of a session at a time
- `writing`: write: the texts of a plan and their segments; the hook before them
- `result`: `CompressResult`, and the event of a commit
- `sessions`: the memory of sessions between turns, bounded in one place
- `background`: leases across processes, and work off the request path
- `preview`: the compression to come, and the tokens of the window
- `telemetry`: spans and metrics where OpenTelemetry is installed
"""
