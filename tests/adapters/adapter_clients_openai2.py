"""The same with the second major version of OpenAI's client."""

import openai

from memci.testing.adapters import AdapterConformance
from tests.adapters.adapter_clients import ClientDriver

assert openai.__version__.startswith("2.")


class TestOpenAI2Client(AdapterConformance):
    driver = ClientDriver
