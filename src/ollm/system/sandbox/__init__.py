"""The box around every child process: namespaces, seccomp and Landlock, entered before the command is run.

`box` describes one, `levels` finds out what the kernel lets us build, `entering` builds it and starts the command
inside; the other modules are the parts it is built from. Standard library only: supervisors have nothing else.
"""
