"""Make the view, a pure function of transcript, ledger, options and window.

Nothing here calls a model or writes.

- `budget`: what a view may take
- `costs`: what a compression costs, what it saves later
- `tiles`: the segments laid along a transcript, by digest and position
- `view`: `View`, a transcript with its tiles, counted
- `masks`: old tool outputs as one line each
- `cuts`: messages too long for the window, cut in their middle
- `excerpts`: results that are too large, as their first and last lines
- `renderer`: masks and excerpts rendered; the sizes of all texts that replace messages
- `jobs`: `Plan` and `Job`: which runs are replaced, in which room
- `splits`: where the tail starts, and which runs before it summaries replace
- `plan`: what a compression does: excerpts, then masks or summaries
- `frame`: the frame around a summary: reference material, never instructions
"""
