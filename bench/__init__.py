"""What SpeechFarm costs: the figures that `make bench` prints."""
