"""States of a workspace's files, saved before and after turns that change files, for rewinding."""
