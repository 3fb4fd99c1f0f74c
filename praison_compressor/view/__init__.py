"""Make the view, a pure function of transcript, ledger, options and window.

Nothing here calls a model or writes.

In the order in which data passes the modules:

- `view`: `View`, a transcript with its tiles, counted: the segments laid along it, by digest and
  position
- `masks`: old tool outputs as one line each; results that are too large, as their first and last
  lines; messages too long for the window, cut in their middle
- `budget`: the values of a plan: what a view may take; which runs are replaced, in how many tokens
- `costs`: what a compression costs now, and saves later
- `renderer`: masks and excerpts rendered; the sizes of all texts that replace messages
- `splits`: where the tail starts, and which runs before it summaries replace
- `plan`: what a compression does: excerpts, then masks or summaries
- `frame`: the frame around a summary: reference material, never instructions
"""
