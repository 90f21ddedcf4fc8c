"""Work on the columns of a trace: nesting, links, and joining traces."""
