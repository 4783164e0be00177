"""Local copies of input files, made before a run reads them: complete, or never trusted.

`entry` names the files of a copy and says when it may be trusted, `copying` makes one, `cache` decides between copying
and taking what is there, under the lock of the source, and `purge` removes what crashed runs left. `inputs` does that
for the sources of a run, `checks` says beforehand why a folder cannot be used.
"""
