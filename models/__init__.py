"""One module a model family; each adapter loads one checkpoint and answers spoken requests."""
