"""What a message costs, and what a model takes: offline, without importing litellm.

`counter` counts messages and tools and learns from what a provider reports; `encodings` counts
their texts and `images` their images; `models` knows windows and prices, and reads the window out
of a provider's refusal.
"""
