"""git for jobs: guarded commands, worktrees, mirrors, delivery."""
