"""Token counts, windows and prices: offline, without importing litellm.

- `counter`: `TokenCounter` for messages and tools, corrected by a provider's reports
- `encodings`: tokens of texts
- `images`: tokens of images
- `models`: windows and prices; the window named in a provider's refusal
"""
