"""The resources of the API, one file each. A handler takes a checked call, asks `mam.access` and answers."""
