"""`tcw check`: the targets of a project, what they may compile to, and the runs that find out."""
