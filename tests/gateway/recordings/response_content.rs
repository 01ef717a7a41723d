//! The content that a client finds in a response: text, and calls of its tools by the names it gave them.

use serde_json::Value;

#[derive(Debug, Default)]
pub struct ResponseContent {
    pub text: String,
    pub calls: Vec<String>,
    arguments: String,
}

impl ResponseContent {
    pub fn from_json(format: &str, response: &Value) -> ResponseContent {
        let mut received = ResponseContent::default();
        match format {
            "chat" => received.chat(&response["choices"][0]["message"]),
            "messages" => list(&response["content"]).for_each(|block| received.block(block)),
            "native" => received.native(response),
            _ => list(&response["output"]).for_each(|item| received.item(item)),
        }
        received
    }

    pub fn from_stream<'p>(
        format: &str,
        pieces: impl Iterator<Item = &'p Value>,
    ) -> ResponseContent {
        let mut received = ResponseContent::default();
        for piece in pieces {
            match format {
                "chat" => received.chat(&piece["choices"][0]["delta"]),
                "messages" => {
                    received.block(&piece["content_block"]);
                    received.push(&piece["delta"]["text"]);
                    received.argue(&piece["delta"]["partial_json"]);
                }
                "native" => received.native(piece),
                _ if piece["type"] == "response.output_item.done" => received.item(&piece["item"]),
                _ => {}
            }
        }
        received
    }

    /// What the recorded shapes ask for, as text or as the arguments of a call that was forced.
    pub fn is_recipe(&self) -> bool {
        let said = if self.calls.is_empty() {
            &self.text
        } else {
            &self.arguments
        };
        let recipe: Value = serde_json::from_str(said).unwrap_or_default();
        let fields = ["title", "minutes", "vegetarian", "ingredients"];
        fields.iter().all(|field| !recipe[field].is_null())
    }

    fn push(&mut self, text: &Value) {
        self.text += text.as_str().unwrap_or_default();
    }

    fn argue(&mut self, arguments: &Value) {
        self.arguments += arguments.as_str().unwrap_or_default();
    }

    fn call(&mut self, name: &Value) {
        self.calls.extend(name.as_str().map(str::to_owned));
    }

    fn chat(&mut self, message: &Value) {
        self.push(&message["content"]);
        for call in list(&message["tool_calls"]) {
            self.call(&call["function"]["name"]);
            self.argue(&call["function"]["arguments"]);
        }
    }

    fn block(&mut self, block: &Value) {
        self.push(&block["text"]);
        self.call(&block["name"]);
        if block["input"]
            .as_object()
            .is_some_and(|input| !input.is_empty())
        {
            self.arguments += &block["input"].to_string();
        }
    }

    fn native(&mut self, response: &Value) {
        for part in list(&response["candidates"][0]["content"]["parts"]) {
            if part["thought"] != true {
                self.push(&part["text"]);
            }
            self.call(&part["functionCall"]["name"]);
            if part["functionCall"].is_object() {
                self.arguments += &part["functionCall"]["args"].to_string();
            }
        }
    }

    /// A tool of a namespace comes back with both names, which the mock takes as one.
    fn item(&mut self, item: &Value) {
        list(&item["content"]).for_each(|part| self.push(&part["text"]));
        match (item["namespace"].as_str(), item["name"].as_str()) {
            (Some(namespace), Some(name)) => self.calls.push(format!("{namespace}__{name}")),
            _ => self.call(&item["name"]),
        }
        self.argue(&item["arguments"]);
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
