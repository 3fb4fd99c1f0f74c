"""Make the view, a pure function of transcript and ledger.

Nothing here calls a model or writes.

- `budget`: what a view may take
- `costs`: what a compression costs, what it saves later
- `view`: `View`, a transcript laid along its segments by digest and position
- `masks`: old tool outputs as one line each
- `cuts`: messages too long for the window, cut in their middle: the last resort
- `excerpts`: results that are too large, as their first and last lines
- `texts`: what replaces messages, rendered and measured
- `jobs`: `Plan` and `Job`: where the tail starts, which runs before it are replaced, in which room
- `plan`: what a compression does: excerpts, then masks or summaries
- `frame`: the frame around a summary: reference material, never instructions
"""
