"""Web Push: tells browsers that no one looks at that a job asks or has failed."""
