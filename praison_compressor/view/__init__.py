"""Make the view, a pure function of transcript, ledger, options and window.

Nothing here calls a model or writes.

Each module imports only from those below it:

- `plan`: what a compression does: excerpts, then masks or summaries
- `splits`: where the tail starts, and which runs before the tail summaries replace
- `renderer`: rendered masks and excerpts; the sizes of quotes
- `budget`: the tokens of a view and of its parts; the plan's values
- `costs`: what a compression costs now, and saves later
- `view`: `View`, a transcript with the segments that replace its runs
- `masks`: one line for an old tool output; excerpts of large results; long messages cut
- `frame`: the frame that marks a summary as reference material
"""
