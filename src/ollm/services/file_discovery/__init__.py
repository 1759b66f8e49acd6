"""File discovery (S6): all files of the project as git sees it, with `.ollmignore` on top."""
