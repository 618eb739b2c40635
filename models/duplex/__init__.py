"""Full-duplex models: adapters of `farm.types.DuplexModel`, stepped frame by frame, many sessions at once."""
