"""The audit log: the journal's copy that outlives the registry."""
