"""Everything that becomes visible is published here: made in an attempt, noted in a journal, renamed as a whole.

`seam` is the only module that touches files; the others call it, so that tests can fail every call in turn.
`attempt` collects what a run made and publishes it, `journal` knows each step forwards and backwards, `manifest` says
what earlier runs wrote, `locks` keeps two runs apart, `recovery` finishes or undoes what a crash left.
"""
