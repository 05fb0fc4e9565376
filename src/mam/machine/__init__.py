"""The machine under mam: its processes, its kernel, what a process inherits. The one room below worker and agents."""
