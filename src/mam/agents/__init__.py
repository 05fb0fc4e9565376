"""The directory of live tmux sessions: which agents run, until when their leases are valid, and how to reach them."""
