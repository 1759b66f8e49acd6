"""The sandbox around every child process: namespaces, seccomp and Landlock, entered before the command runs.

`box` describes one, `levels` detects what the kernel supports, `host` starts the command inside. Standard library
only: supervisors have nothing else.
"""
