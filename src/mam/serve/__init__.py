"""`mam serve`: one optional process that brings a registry to the network. It runs no agent.

Routes parse, call `mam.access` and answer. They contain no rules.
"""
