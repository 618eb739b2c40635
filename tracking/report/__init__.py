"""The report of a result store: one HTML page, its tables as CSV and Markdown beside it.

Invariant: read from the store alone; nothing that a model said reaches the page unescaped.
"""
