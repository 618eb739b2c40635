"""One module a scorer family; each scorer judges batches of replies."""
