"""What recordings note while the user's program runs: a file for each source. `base` says what a source is."""
