"""The exam: can a reader go on from a view? Questions on real sessions, read by a strong model.

    python -m tests.benchmarks.exam make OUT [--share .25] [--rounds 1]
    python -m tests.benchmarks.exam ask OUT/25/static-recall 3 search_conversation_archive query=...
    python -m tests.benchmarks.exam mark OUT/25
    python -m tests.benchmarks.exam table OUT/25

`make` writes a folder a method: the views with their questions, and what a reader is to do; a
reader with a fresh context answers into `answers.json` there. `mark` lays the answers side by side
without names, for one marker, who writes `marks.json`. `table` prints what came of it. Readers
and marker are people or strong models: this program calls none.

In the order in which an exam is held:

- `cases`: the sessions, their questions, the budget of a view, the recall tools with their log
- `views`: the methods that make a view of a session
- `sheets`: the folders for readers and marker
- `__main__`: the commands; sums, kinds, false beliefs, calls and tokens a question
"""
