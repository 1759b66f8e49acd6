"""File discovery (S6): the whole project, as git sees it, with `.ollmignore` on top."""
