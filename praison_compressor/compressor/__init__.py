"""Compress one request: look, decide, write, commit, return the result.

In the order in which data passes the modules:

- `context_compressor`: `ContextCompressor`, the public interface
- `request`: `Request`: the checked messages, options, budget and mode of one call
- `pipeline`: looks, decides, writes, commits, as the request's mode needs
- `session_states`: what is remembered of sessions between turns
- `projection`: a transcript's view by its session's ledger; `LastTurn` extends the view before
- `choices`: messages that a user keeps, and ranges
- `decision`: whether a view is compressed now, by which plan, and why
- `preview`: the next compression, and the tokens of the window
- `plan_texts`: write a plan's texts, or use earlier texts; make the segments
- `lease`: one worker at a time compresses a session
- `commit`: the hook, the texts and the commit of one decision; events; skips
- `background`: the thread that writes summaries off the request path
- `result`: `CompressResult`: the view to send, and its numbers
- `bills`: the values: `Bill`, `RequestUsage`
- `billing`: charges what a session cost
- `account`: one session's costs, kept in the store
- `stored_sessions`: restore, read, save and undo the sessions of a store
- `telemetry`: spans and metrics, if OpenTelemetry is installed
"""
