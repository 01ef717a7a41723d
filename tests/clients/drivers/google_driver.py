"""The official Google SDK: native."""

from driver import DESCRIPTION, PARAMETERS, Recipe, Driver, serve
from google import genai
from google.genai import types


class Native(Driver):
    def __init__(self):
        super().__init__()
        options = types.HttpOptions(base_url=self.gateway)
        # It closes its connections when nobody holds it.
        self.client = genai.Client(api_key=self.key, http_options=options)
        self.models = self.client.models

    def generate(self, contents, **settings):
        config = types.GenerateContentConfig(**settings)
        return self.models.generate_content(model=self.model, contents=contents, config=config)

    def text(self, prompt):
        return self.generate(prompt).text

    def stream(self, prompt):
        for chunk in self.models.generate_content_stream(model=self.model, contents=prompt):
            yield chunk.text

    def tools(self, prompt, lookup):
        function = types.FunctionDeclaration(
            name="lookup", description=DESCRIPTION, parameters_json_schema=PARAMETERS
        )
        settings = {"tools": [types.Tool(function_declarations=[function])]}
        asked = types.Content(role="user", parts=[types.Part(text=prompt)])
        reply = self.generate([asked], **settings)
        results = [
            types.Part.from_function_response(name=call.name, response={"result": lookup(**call.args)})
            for call in reply.function_calls
        ]
        called = reply.candidates[0].content
        answered = types.Content(role="user", parts=results)
        return self.generate([asked, called, answered], **settings).text

    def json(self, prompt):
        mime = "application/json"
        return self.generate(prompt, response_mime_type=mime, response_schema=Recipe).parsed


serve({"native": Native})
