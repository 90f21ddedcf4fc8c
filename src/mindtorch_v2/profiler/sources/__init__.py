"""What recordings collect while the user's program runs: a file per source. `base` defines a source."""
