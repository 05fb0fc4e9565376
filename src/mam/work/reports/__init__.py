"""What coding agents tell in their output: one file for each wire form, all of it pure."""
