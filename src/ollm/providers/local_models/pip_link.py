"""Print the URL that pip would download a package from: `python pip_link.py NAME VERSION`.

Run by any interpreter that has pip, so it imports nothing of ours. pip is asked because it knows the machine's index,
mirrors and proxies. Its insides may change: any failure here only means that another way is tried.
"""

import sys


def find_wheel_url(name: str, version: str) -> str:
    from pip._internal.commands import create_command  # type: ignore[import-not-found] # another interpreter has it

    command = create_command("download")
    options, _ = command.parse_args(["--quiet", "--no-deps", f"{name}=={version}"])
    with command.main_context():
        session = command.get_default_session(options)
        finder = command._build_package_finder(options=options, session=session)  # noqa: SLF001 - see above
        found = finder.find_all_candidates(name)
        wheels = [c.link for c in found if str(c.version) == version and c.link.is_wheel]
        return str(wheels[0].url_without_fragment)


if __name__ == "__main__":
    sys.stdout.write(find_wheel_url(sys.argv[1], sys.argv[2]) + "\n")
