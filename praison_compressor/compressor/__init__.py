"""Look, decide, write, commit and return the result of one request.

- `context_compressor`: `ContextCompressor`, the public interface
- `request`: `Request`: messages, options, budget and mode of one call; `CompressResult`, its output
- `stored_sessions`: what the store has of sessions: restore, read, save, undo
- `pipeline`: the steps in their order, by the request's mode; after a lost race again, at most
  eight times in all
- `session_state`: what is remembered of sessions between turns; only `SessionStates` changes it,
  `Billing` charges it
- `projection`: makes a transcript's view by its session's ledger; `LastTurn` answers a turn that
  only adds messages
- `choices`: messages that a user keeps, and ranges; the ledger records the kept messages
- `decision`: whether a view is compressed now, by what plan, and why; what that costs; whether the
  provider's cache is cold
- `plan_texts`: write a plan's texts, reuse texts already paid for, make the segments
- `commit`: the hook, the texts and the commit of one decision, under the session's lease; events;
  messages that the archive drops; reports of skipped compressions
- `background`: the thread in which summaries are written off the request path
- `preview`: the compression to come, and the tokens of the window
- `bills`: what a session cost, and what it would have cost without us; providers' reports
- `account`: keep a session's bill in the store
- `telemetry`: spans and metrics, if OpenTelemetry is installed
"""
