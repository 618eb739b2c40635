"""Recognisers and synthesisers that models, scorers and builders share."""
