"""Many ranks of one program: what they did differently first, who waited for whom.

Pure functions of the ranks' recordings.
"""
