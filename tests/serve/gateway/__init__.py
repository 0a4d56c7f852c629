"""The gateway, with the real SDKs in front of it and a provider of the tests behind it."""
