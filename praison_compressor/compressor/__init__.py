"""Compress one request: look, decide, write, commit, return the result.

In the order in which data passes the modules:

- `context_compressor`: `ContextCompressor`, the public interface
- `request`: `Request`: messages, options, budget and mode of one call; `CompressResult`, its output
- `pipeline`: the steps in order, by the request's mode; a lost race repeats them
- `stored_sessions`: sessions in the store: restored, read, saved, undone
- `session_state`: sessions in memory, between turns; `Billing` charges them
- `projection`: a transcript's view by its session's ledger; `LastTurn` answers a turn that only
  adds messages
- `choices`: messages and ranges that a user chose
- `decision`: whether a view is compressed now, by which plan, why, and at what cost; whether the
  provider's cache is cold
- `plan_texts`: the texts of a plan, written or already paid for; the segments
- `commit`: the hook, the texts and the commit of one decision, under the session's lease; events
- `background`: the thread that writes summaries off the request path
- `preview`: the next compression, and the tokens of the window
- `bills`: what a session costs, and would cost without this package; providers' reports
- `account`: a session's bill in the store
- `telemetry`: spans and metrics, if OpenTelemetry is installed
"""
