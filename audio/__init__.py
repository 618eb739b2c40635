"""Waveforms: decode, resample, write, and the conditions that degrade them."""
