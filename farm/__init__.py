"""The ground: the vocabulary's types, ids, plan, result store, statistics. Knows nothing of Ray, torch or MLflow."""
