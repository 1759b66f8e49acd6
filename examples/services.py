import asyncio
from pathlib import Path

from ollm import (
    DiscoveryOptions,
    EnvironmentSanitizationService,
    FileDiscoveryService,
    LoopDetectionService,
    Redactor,
    Settings,
)

print(EnvironmentSanitizationService().sanitize({"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "…"}))
print(Redactor().redact("password=hunter2-and-more"))

loops = LoopDetectionService()
for _ in range(3):
    loops.record_tool_call("grep", {"pattern": "TODO"})
print(loops.check_for_loop())


async def files() -> None:
    discovery = FileDiscoveryService(Settings().file_discovery, Path.home())
    for entry in await discovery.discover_all(DiscoveryOptions(root=".")):
        print(entry.path)


asyncio.run(files())
