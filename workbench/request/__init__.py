"""What a person asks for, on a command line or in a project's file, and how tcw answers: options as
settings; the files, folders and revisions that are named; messages and exit codes."""
