"""The page: view models made from records of the registry, and the handlers that show them. Templates hold no rule."""
