"""Where the store is, whether it belongs to the user, and what git tracks of it."""
