"""The operating system: processes, the kernel, the environment. Used by workers and agents."""
