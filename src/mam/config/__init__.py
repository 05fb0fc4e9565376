"""Settings: the user's file, the project's file, and what may be trusted in them."""
