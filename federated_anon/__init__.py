"""One joint k-anonymous table from organisations that hold different columns about the same people."""
