"""Make the view, a pure function of transcript, ledger, options and window.

Nothing here calls a model or writes.

In the order in which data passes the modules:

- `view`: `View`, a transcript with the segments that replace its runs
- `budget`: the tokens of a view and of its parts; the plan's values
- `costs`: what a compression costs now, and saves later
- `masks`: one line for an old tool output; excerpts of large results; long messages cut
- `renderer`: rendered masks and excerpts; the sizes of quotes
- `plan`: what a compression does: excerpts, then masks or summaries
- `splits`: where the tail starts, and which runs before the tail summaries replace
- `frame`: the frame that marks a summary as reference material
"""
