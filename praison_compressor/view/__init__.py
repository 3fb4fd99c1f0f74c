"""The view, as a pure function of transcript and ledger: nothing here calls a model or writes.

- `budget`: what a view may weigh: limit, trigger, target and their shares
- `layout`: a transcript with its counts and the segments found along it by digest and position
- `masks`: old tool outputs as one line each, results that are too large as their first and last
  lines; messages cut in their middle as the last resort
- `jobs`: the stretches that may be represented anew, and the room that each summary gets
- `plan`: what a compression does: masks, or summaries, and where the verbatim tail starts
- `frame`: the frame round a summary: reference material, never instructions
"""
