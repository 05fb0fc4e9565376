"""Events about jobs: their format, signature and delivery rules. Pure."""
