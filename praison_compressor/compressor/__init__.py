"""Look, decide, write, commit and return the result of one request.

- `context_compressor`: `ContextCompressor`, the public interface
- `request`: `Request`: messages, options, budget and mode of one call
- `stored_sessions`: what the store has of sessions: restore, read, save, undo
- `pipeline`: the steps in their order, by the request's mode; after a lost race once more
- `session_state`: what is remembered of sessions between turns; only `SessionStates` changes it
- `quiet_turn`: `LastTurn`, which a turn that only adds messages extends
- `projection`: look: a transcript's view by its session's ledger
- `choices`: messages that a user keeps, and ranges
- `decision`: whether a view is compressed now, by what plan, and why; what a preview showed
- `skips`: report once why a due compression is not done
- `prices`: what requests and compressions cost; whether the provider's cache is cold
- `commit`: the hook, the texts and the commit of one decision; its room in the archive, its events
- `lease`: one writer of a session in all processes
- `plan_texts`: write a plan's texts, reuse texts already paid for, make the segments
- `result`: `CompressResult`, made of a view; later steps return copies with more values
- `background`: the thread in which summaries are written off the request path
- `preview`: the compression to come, and the tokens of the window
- `bills`: what a session cost, and what it would have cost without us; providers' reports
- `account`: keep a session's bill in the store
- `billing`: charge sessions with requests and summaries
- `telemetry`: spans and metrics where OpenTelemetry is installed
"""
