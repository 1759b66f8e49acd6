"""States of a workspace's files, saved before and after the turns that change some, to go back to."""
