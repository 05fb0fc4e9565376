"""The plugin: what tells a coding agent about mam (its skill, its MCP server and its hooks), in files that it reads.

mam shows every change before it writes, remembers what it wrote, and can take exactly that back.
"""
