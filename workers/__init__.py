"""Ray: the model worker, the scorer worker, and the engine that feeds them."""
