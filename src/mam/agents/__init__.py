"""The directory of live sessions: who is there, until when that is believed, and how to reach exactly that one."""
