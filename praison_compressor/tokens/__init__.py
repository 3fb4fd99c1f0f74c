"""Count tokens; look up windows and prices, offline and without litellm.

Each module imports only from those below it:

- `counter`: `TokenCounter` for messages, images and tools
- `learned`: a window and a correction of our counts, learned from a provider's answers
- `refusals`: the length and window that a provider's refusal names
- `models`: a model's window, prices and vocabulary
"""
