"""The audit log: a copy of the journal that outlives the registry."""
