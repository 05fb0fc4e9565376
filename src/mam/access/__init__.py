"""Who may do what: viewers with a grant, the credentials that prove who they are, and the registry with their rights.

The API, the page and the tools for agents ask here and hold no rule of their own. Nothing here knows the web.
"""
