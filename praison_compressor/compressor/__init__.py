"""Compress one request: look, decide, write, commit, return the result.

Each module imports only from those below it:

- `context_compressor`: `ContextCompressor`, the public interface
- `pipeline`: looks, decides, writes, commits, as the request's mode needs
- `preview`: the next compression, and the tokens of the window
- `commit`: the hook, the texts and the commit of one decision; events; skips
- `plan_texts`: write a plan's texts, or use earlier texts; make the segments
- `lease`: one worker at a time compresses a session
- `background`: the thread that writes summaries off the request path
- `billing`: charges what a session cost
- `stored_sessions`: restore, read, save and undo the sessions of a store
- `session_states`: what is remembered of sessions between turns
- `projection`: a transcript's view by its session's ledger; `LastTurn` extends the view before
- `decision`: whether a view is compressed now, by which plan, and why
- `choices`: messages that a user keeps, and ranges
- `account`: one session's costs, kept in the store
- `result`: `CompressResult`: the view to send, and its numbers
- `request`: `Request`: the checked messages, options, budget and mode of one call
- `bills`: the values: `Bill`, `RequestUsage`
- `telemetry`: spans and metrics, if OpenTelemetry is installed
"""
