"""Count tokens; look up windows and prices, offline and without litellm.

In the order in which data passes the modules:

- `models`: a model's window, prices and vocabulary
- `counter`: `TokenCounter` for messages, images and tools
- `refusals`: whether a provider's refusal means length, and which window
- `learned`: a window learned from requests that passed and that were refused; the factor by which
  our counts differ from a provider's
"""
