"""Jobs as files on one host: a directory a person can read, behind a journal that a power cut cannot confuse."""
