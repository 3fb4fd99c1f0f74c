"""The life of a session on one page: what was compressed when, what each summary kept, its cost.

`life` collects it from a ledger or from a transcript, `page` writes it, `family` draws lineages.
"""
