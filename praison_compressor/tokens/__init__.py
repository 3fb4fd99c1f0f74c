"""Count tokens; look up windows and prices, offline and without litellm.

In the order in which data passes the modules:

- `models`: a model's window, prices and vocabulary
- `counter`: `TokenCounter` for messages, images and tools
- `refusals`: the length and window that a provider's refusal names
- `learned`: a window and a correction of our counts, learned from a provider's answers
"""
