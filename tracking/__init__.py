"""MLflow: the projection of results into runs, and the leaderboard."""
