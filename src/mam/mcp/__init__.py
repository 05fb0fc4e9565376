"""mam over the Model Context Protocol: tools, tasks, resources and prompts for agents.

`protocol` decides what a request gets; it knows no transport. `stdio` and `http` read, write and wait.
"""
