"""Token counts, windows and prices: offline, without importing litellm.

- `counter`: `TokenCounter` for messages and tools
- `calibration`: counts corrected by a provider's reports
- `encodings`: tokens of texts
- `images`: tokens of images
- `models`: windows and prices
- `refusals`: whether a provider's refusal means length, and which window
- `windows`: a window learned from requests that passed and that were refused
"""
