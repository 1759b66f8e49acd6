"""The box around every child process: namespaces, seccomp and Landlock, entered before the command is run.

`box` describes one, `levels` finds out what the kernel lets us build, `host` and `command` start the command inside.
Standard library only: supervisors have nothing else.
"""
