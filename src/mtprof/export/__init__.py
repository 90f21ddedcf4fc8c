"""Files made from a trace or from lists of events: Chrome traces, stacks, tables. Knows no tensor."""
