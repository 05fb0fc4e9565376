"""The plugin: what tells a coding agent about mam (its skill and its MCP server), in files that the agent reads.

mam shows every change before it writes, remembers what it wrote, and can take exactly that back.
"""
