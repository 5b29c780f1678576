"""The coordinator's side: it never sees a record as its holder stores it."""
