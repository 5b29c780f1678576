"""The data holder's side: the only place that sees records."""
