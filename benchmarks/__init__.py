"""One module a benchmark: items from its real data layout, and its prompts."""
