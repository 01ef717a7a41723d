//! The defects: what gateways are known to do wrong, one at a time.

use serde_json::{Value, json};

use super::broken_proxy::{Mutation, ProxyReply};

const fn of_request(
    name: &'static str,
    scenario: &'static str,
    loss: &'static str,
    change: fn(&mut Value),
) -> Mutation {
    Mutation {
        name,
        scenario,
        loss,
        request: Some(change),
        event: None,
        reply: None,
    }
}

const fn of_event(
    name: &'static str,
    scenario: &'static str,
    loss: &'static str,
    change: fn(&mut Value),
) -> Mutation {
    Mutation {
        name,
        scenario,
        loss,
        request: None,
        event: Some(change),
        reply: None,
    }
}

const fn of_reply(
    name: &'static str,
    scenario: &'static str,
    loss: &'static str,
    change: fn(&mut ProxyReply),
) -> Mutation {
    Mutation {
        name,
        scenario,
        loss,
        request: None,
        event: None,
        reply: Some(change),
    }
}

pub const MUTATIONS: &[Mutation] = &[
    of_request(
        "drops the system prompt",
        "system",
        "system prompt lost",
        |body| {
            remove(body, &["system", "instructions", "systemInstruction"]);
            keep_messages(body, |message| message["role"] != "system");
        },
    ),
    of_request(
        "takes a temperature of 0 for none",
        "temperature-zero",
        "temperature lost",
        |body| {
            remove(body, &["temperature"]);
        },
    ),
    of_request(
        "sends another temperature to messages upstreams",
        "temperature-zero",
        "temperature was 0, became 1",
        |body| {
            if body["max_tokens"].is_u64() && body["temperature"].is_number() {
                body["temperature"] = json!(1);
            }
        },
    ),
    of_request(
        "caps the output limit",
        "parameters",
        "output limit was 300, became 100",
        |body| {
            if body["max_completion_tokens"].is_u64() {
                body["max_completion_tokens"] = json!(100);
            }
        },
    ),
    of_request("drops the seed", "parameters", "seed lost", |body| {
        remove(body, &["seed"])
    }),
    of_request(
        "drops the end user",
        "parameters",
        "end user lost",
        |body| remove(body, &["user", "metadata"]),
    ),
    of_request(
        "drops stop sequences",
        "stop",
        "stop sequences lost",
        |body| {
            remove(body, &["stop", "stop_sequences"]);
        },
    ),
    of_request(
        "drops descriptions of tools",
        "tool-declarations",
        "tool get_weather was",
        |body| {
            each(body, &mut |object| {
                remove_where(object, "description", |value| {
                    value == "The weather of a city"
                })
            });
        },
    ),
    of_request(
        "drops required of schemas",
        "tool-schema",
        "tool find was",
        |body| {
            each(body, &mut |object| remove(object, &["required"]));
        },
    ),
    of_request(
        "upper-cases a property named type",
        "tool-schema",
        "tool find was",
        |body| {
            each(body, &mut |object| {
                let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut)
                else {
                    return;
                };
                if let Some(found) = properties.remove("type") {
                    properties.insert("TYPE".to_owned(), found);
                }
            });
        },
    ),
    of_request(
        "drops a forced tool choice",
        "tool-choice-required",
        "tool choice lost",
        |body| {
            remove(body, &["tool_choice", "toolConfig"]);
        },
    ),
    of_request(
        "forces some tool instead of the named one",
        "tool-choice-named",
        "tool choice was",
        |body| {
            if body["tool_choice"].is_object()
                && body["messages"].is_array()
                && body["max_tokens"].is_null()
            {
                body["tool_choice"] = json!("required");
            }
            each(body, &mut |object| {
                remove(object, &["allowedFunctionNames"])
            });
        },
    ),
    of_request(
        "lets a tool be called that is forbidden",
        "tool-choice-none",
        "tool choice lost",
        |body| {
            remove(body, &["tool_choice", "toolConfig"]);
        },
    ),
    of_request(
        "drops the switch for parallel calls",
        "tool-calls-one-at-a-time",
        "one call at a time lost",
        |body| {
            remove(body, &["parallel_tool_calls", "tool_choice"]);
        },
    ),
    of_request(
        "forgets turns in the middle",
        "multi-turn",
        "lost: assistant says",
        |body| {
            let Some(messages) = body.get_mut("messages").and_then(Value::as_array_mut) else {
                return;
            };
            messages.drain(2..messages.len() - 1);
        },
    ),
    of_request(
        "merges all turns of the user",
        "multi-turn",
        "request:",
        |body| {
            let Some(messages) = body.get_mut("messages").and_then(Value::as_array_mut) else {
                return;
            };
            let (mut users, mut others): (Vec<Value>, Vec<Value>) = messages
                .drain(..)
                .partition(|message| message["role"] == "user");
            others.append(&mut users);
            *messages = others;
        },
    ),
    of_request("drops images", "image", "user sends image", |body| {
        each_list(body, &mut |part| {
            !matches!(kind(part), "image_url" | "image" | "input_image")
        });
    }),
    of_request(
        "drops documents",
        "document",
        "user sends document",
        |body| {
            each_list(body, &mut |part| {
                !matches!(kind(part), "file" | "document" | "input_file")
            });
        },
    ),
    of_request("drops audio", "audio", "user sends audio", |body| {
        each_list(body, &mut |part| {
            kind(part) != "input_audio" && part["inlineData"].is_null()
        });
    }),
    of_request(
        "drops the schema of the output",
        "structured-output",
        "output schema lost",
        |body| {
            remove(body, &["response_format", "output_config", "text"]);
        },
    ),
    of_request(
        "swaps the results of two calls",
        "tool-results-parallel",
        "result of call",
        |body| {
            each(body, &mut |object| {
                let swapped = match object["tool_call_id"].as_str() {
                    Some("call_one") => "call_two",
                    Some("call_two") => "call_one",
                    _ => return,
                };
                object["tool_call_id"] = json!(swapped);
            });
        },
    ),
    of_request(
        "gives results other ids",
        "tool-result",
        "the upstream refused it",
        |body| {
            each(body, &mut |object| {
                for field in ["tool_call_id", "tool_use_id"] {
                    if object[field].is_string() {
                        object[field] = json!("other");
                    }
                }
            });
        },
    ),
    of_request(
        "drops text beside calls",
        "tool-result",
        "lost: assistant says: I look.",
        |body| {
            each(body, &mut |object| {
                if object["tool_calls"].is_array() {
                    object["content"] = Value::Null;
                }
            });
        },
    ),
    of_request(
        "drops that a call failed",
        "tool-result-error",
        "call 1 failed",
        |body| {
            each(body, &mut |object| remove(object, &["is_error"]));
        },
    ),
    of_request(
        "wraps results that are JSON",
        "tool-result-json",
        "result of call 1",
        |body| {
            each(body, &mut |object| {
                if object["role"] == "tool" {
                    object["content"] = json!(json!({"content": object["content"]}).to_string());
                }
            });
        },
    ),
    of_request("drops the effort", "reasoning", "effort lost", |body| {
        remove(
            body,
            &["reasoning_effort", "reasoning", "thinking", "output_config"],
        );
    }),
    of_request(
        "drops signatures",
        "reasoning-sent-back",
        "signature",
        |body| {
            each_list(body, &mut |part| {
                !matches!(kind(part), "thinking" | "reasoning")
            });
            each(body, &mut |object| remove(object, &["thoughtSignature"]));
        },
    ),
    of_request(
        "changes signatures",
        "reasoning-sent-back",
        "the upstream refused it",
        |body| {
            each(body, &mut |object| {
                for field in ["signature", "thoughtSignature", "encrypted_content"] {
                    if object[field].is_string() {
                        object[field] = json!("YW5vdGhlcg==");
                    }
                }
            });
        },
    ),
    of_request(
        "sends a field that the format has not",
        "text",
        "unknown field `provider`",
        |body| {
            body["provider"] = json!("score");
        },
    ),
    of_request(
        "drops the limit that messages requires",
        "text",
        "max_tokens is missing",
        |body| {
            remove(body, &["max_tokens"]);
        },
    ),
    of_request("trims texts", "whitespace", "lost: user says", |body| {
        each(body, &mut |object| {
            for field in ["content", "text"] {
                if let Some(text) = object[field].as_str() {
                    object[field] = json!(text.trim());
                }
            }
        });
    }),
    of_request(
        "cuts large requests",
        "large-request",
        "lost: user says",
        |body| {
            each(body, &mut |object| {
                for field in ["content", "text"] {
                    if let Some(text) = object[field].as_str() {
                        object[field] = json!(text.chars().take(1 << 18).collect::<String>());
                    }
                }
            });
        },
    ),
    of_event("counts no tokens", "usage", "usage: input lost", |body| {
        each(body, &mut |object| {
            remove(object, &["usage", "usageMetadata"])
        });
    }),
    of_event(
        "forgets cached tokens",
        "usage-cached",
        "usage: cache reads lost",
        |body| {
            each(body, &mut |object| {
                remove(
                    object,
                    &[
                        "prompt_tokens_details",
                        "input_tokens_details",
                        "cachedContentTokenCount",
                    ],
                )
            });
        },
    ),
    of_event(
        "shows the uncached input as all of it",
        "usage-cached",
        "usage: input was 1000, became 200",
        |body| {
            each(body, &mut |object| {
                remove(object, &["cache_read_input_tokens"])
            });
        },
    ),
    of_event(
        "counts reasoning twice",
        "usage-reasoning",
        "usage: output was 300, became 550",
        |body| {
            each(body, &mut |object| {
                if object["completion_tokens"].is_u64() {
                    object["completion_tokens"] = json!(550);
                }
            });
        },
    ),
    of_event(
        "says that a cut response is whole",
        "finish-length",
        "finish was length, became",
        |body| {
            each(body, &mut |object| {
                if object["finish_reason"].is_string() {
                    object["finish_reason"] = json!("stop");
                }
                if object["finishReason"].is_string() {
                    object["finishReason"] = json!("STOP");
                }
            });
        },
    ),
    of_event(
        "says stop for calls",
        "tool-call",
        "finish was tool calls, became end",
        |body| {
            each(body, &mut |object| {
                if object["finish_reason"].is_string() {
                    object["finish_reason"] = json!("stop");
                }
            });
        },
    ),
    of_event(
        "drops the second call",
        "tool-calls-parallel",
        "call 2 lost",
        |body| {
            each_list(body, &mut |part| {
                part["functionCall"]["args"]["city"] != "Rome" && part["id"] != "call_two"
            });
        },
    ),
    of_event(
        "gives calls no ids",
        "tool-call",
        "calls have no ids",
        |body| {
            each(body, &mut |object| {
                for field in ["id", "call_id"] {
                    if object[field] == "call_one" {
                        object[field] = json!("");
                    }
                }
            });
        },
    ),
    of_event(
        "rounds large numbers",
        "tool-arguments",
        "call 1 was",
        |body| {
            each(body, &mut |object| {
                if object["big"].is_u64() {
                    object["big"] = json!(9_007_199_254_740_992_u64);
                }
            });
        },
    ),
    of_event(
        "escapes arguments twice",
        "tool-arguments",
        "call 1 was",
        |body| {
            each(body, &mut |object| {
                if let Some(text) = object["arguments"].as_str() {
                    object["arguments"] = json!(text.replace('\\', "\\\\"));
                }
            });
        },
    ),
    of_event("shows reasoning as text", "reasoning", "text was", |body| {
        each(body, &mut |object| remove(object, &["thought"]));
    }),
    of_event(
        "drops the words of a refusal",
        "refusal",
        "text lost",
        |body| {
            each(body, &mut |object| remove(object, &["refusal"]));
        },
    ),
    of_event(
        "counts citations in bytes",
        "citation",
        "citation 1 was",
        |body| {
            each(body, &mut |object| {
                for field in ["start_index", "end_index"] {
                    if let Some(at) = object[field].as_u64() {
                        object[field] = json!(at + 10);
                    }
                }
            });
        },
    ),
    of_event("drops citations", "citation", "citation 1 lost", |body| {
        each(body, &mut |object| {
            remove(object, &["annotations", "groundingMetadata", "citations"])
        });
    }),
    of_reply(
        "reads characters chunk by chunk",
        "unicode",
        "text was",
        |reply| {
            let read = reply
                .chunks
                .iter()
                .map(|chunk| String::from_utf8_lossy(chunk).into_owned());
            let read: String = read.collect();
            reply.set_text(read);
        },
    ),
    of_reply(
        "cuts large responses",
        "large-response",
        "response:",
        |reply| {
            let text: String = reply.text().chars().take(64 << 10).collect();
            reply.set_text(text);
        },
    ),
    of_reply(
        "drops the last event",
        "text",
        "ends cleanly, without its last event",
        |reply| {
            let text = reply.text();
            if reply.is_stream() {
                let end = text.trim_end().rfind("data: ").unwrap_or_default();
                reply.set_text(text[..end].to_owned());
            }
        },
    ),
    of_reply(
        "leaves [DONE] out",
        "stream-form",
        "does not end with [DONE]",
        |reply| {
            let text = reply.text().replace("data: [DONE]\n\n", "");
            reply.set_text(text);
        },
    ),
    of_reply(
        "ends [DONE] on native streams",
        "text",
        "an event is no JSON",
        |reply| {
            if reply.is_stream() {
                let text = reply.text() + "data: [DONE]\n\n";
                reply.set_text(text);
            }
        },
    ),
    of_reply(
        "sends comments on native streams",
        "text",
        "a line that is no data",
        |reply| {
            if reply.is_stream() {
                let text = format!(": keep-alive\n\n{}", reply.text());
                reply.set_text(text);
            }
        },
    ),
    of_reply("leaves event names out", "text", "is named None", |reply| {
        let text = reply.text();
        let lines: Vec<&str> = text
            .split('\n')
            .filter(|line| !line.starts_with("event:"))
            .collect();
        reply.set_text(lines.join("\n"));
    }),
    of_reply(
        "starts a message twice",
        "text",
        "a second message_start",
        |reply| {
            let text = reply.text();
            if let Some((first, _)) = text
                .split_once("\n\n")
                .filter(|(first, _)| first.contains("message_start"))
            {
                reply.set_text(format!("{first}\n\n{text}"));
            }
        },
    ),
    of_reply(
        "repeats an event",
        "stream-form",
        "the sequence_number",
        |reply| {
            let text = reply.text();
            if let Some((first, _)) = text
                .split_once("\n\n")
                .filter(|(first, _)| first.contains("response.created"))
            {
                reply.set_text(format!("{first}\n\n{text}"));
            }
        },
    ),
    of_reply(
        "ends a stream that was cut as if nothing were missing",
        "upstream-dies",
        "ends cleanly",
        |reply| {
            reply.is_cut = false;
        },
    ),
    of_reply(
        "invents an end for a stream that was cut",
        "upstream-dies",
        "takes the response for whole",
        |reply| {
            let text = reply.text();
            if reply.is_cut && text.contains("chat.completion.chunk") {
                let end = json!({"object": "chat.completion.chunk", "choices": [{"delta": {}, "finish_reason": "stop"}]});
                reply.is_cut = false;
                reply.set_text(format!("{text}data: {end}\n\ndata: [DONE]\n\n"));
            }
        },
    ),
    of_reply(
        "hides an error behind a success",
        "upstream-fails-after-200",
        "failure:",
        |reply| {
            let text = reply.text();
            let frames: Vec<&str> = text
                .split("\n\n")
                .filter(|frame| !frame.contains("failed after all"))
                .collect();
            reply.set_text(frames.join("\n\n"));
        },
    ),
    of_reply(
        "passes garbage on",
        "upstream-sends-garbage",
        "failure: no error of the client's format",
        |_| {},
    ),
    of_reply(
        "drops retry-after",
        "error-429",
        "retry-after was 7",
        |reply| {
            reply.headers.retain(|(name, _)| name != "retry-after");
        },
    ),
    of_reply(
        "makes every error a 500",
        "error-404",
        "the status was 404, became 500",
        |reply| {
            reply.status = 500;
        },
    ),
    of_reply(
        "makes an error a success",
        "error-500",
        "failure:",
        |reply| reply.status = 200,
    ),
    of_reply(
        "answers errors in words",
        "error-400",
        "no error of the client's format",
        |reply| {
            reply.set_text("Bad Request".to_owned());
        },
    ),
    of_reply(
        "hides the reason of a refusal",
        "error-400",
        "the words of the 400 are lost",
        |reply| {
            let text = reply.text().replace("for a reason", "");
            reply.set_text(text);
        },
    ),
];

/// What gateways do that loses nothing, or that another scenario counts.
pub const HARMLESS: &[Mutation] = &[
    of_event(
        "counts no tokens where nobody asks for them",
        "text",
        "",
        |body| {
            each(body, &mut |object| {
                remove(object, &["usage", "usageMetadata"])
            });
        },
    ),
    of_reply("ends a stream without [DONE]", "text", "", |reply| {
        let text = reply.text().replace("data: [DONE]\n\n", "");
        reply.set_text(text);
    }),
    of_request("has empty definitions", "tool-declarations", "", |body| {
        each(body, &mut |object| {
            for field in ["parameters", "input_schema", "parametersJsonSchema"] {
                if object[field].is_object() {
                    object[field]["$defs"] = json!({});
                }
            }
        });
    }),
    of_event("numbers no event rightly", "text", "", |body| {
        each(body, &mut |object| {
            if object["sequence_number"].is_u64() {
                object["sequence_number"] = json!(1);
            }
        });
    }),
    of_event("has errors of its own shape", "error-429", "", |body| {
        if let Some(message) = body["error"].get("message").cloned() {
            *body = json!({"error": {"message": message}});
        }
    }),
    of_request("sorts what is required", "tool-schema", "", |body| {
        each(body, &mut |object| {
            if let Some(names) = object.get_mut("required").and_then(Value::as_array_mut) {
                names.reverse();
            }
        });
    }),
    of_request("says null as a choice", "tool-schema", "", |body| {
        each(body, &mut |object| {
            if object["type"] == json!(["string", "null"]) {
                remove(object, &["type"]);
                object["anyOf"] = json!([{"type": "string"}, {"type": "null"}]);
            }
        });
    }),
    of_request(
        "has the schema of the output at its older place",
        "structured-output",
        "",
        |body| {
            if let Some(format) = body["output_config"].get("format").cloned() {
                remove(body, &["output_config"]);
                body["output_format"] = format;
            }
        },
    ),
];

fn remove(object: &mut Value, fields: &[&str]) {
    let Some(object) = object.as_object_mut() else {
        return;
    };
    for field in fields {
        object.remove(*field);
    }
}

fn remove_where(object: &mut Value, field: &str, is_meant: impl Fn(&Value) -> bool) {
    if is_meant(&object[field]) {
        remove(object, &[field]);
    }
}

fn kind(part: &Value) -> &str {
    part["type"].as_str().unwrap_or_default()
}

fn keep_messages(body: &mut Value, is_kept: impl Fn(&Value) -> bool) {
    if let Some(messages) = body.get_mut("messages").and_then(Value::as_array_mut) {
        messages.retain(is_kept);
    }
}

/// Every object of a body, the inner ones first.
fn each(value: &mut Value, change: &mut dyn FnMut(&mut Value)) {
    match value {
        Value::Object(fields) => {
            for inner in fields.values_mut() {
                each(inner, change);
            }
            change(value);
        }
        Value::Array(elements) => {
            for inner in elements {
                each(inner, change);
            }
        }
        _ => {}
    }
}

/// Every list of a body: elements that are not kept are dropped.
fn each_list(value: &mut Value, is_kept: &mut dyn FnMut(&Value) -> bool) {
    match value {
        Value::Object(fields) => {
            for inner in fields.values_mut() {
                each_list(inner, is_kept);
            }
        }
        Value::Array(elements) => {
            elements.retain(|element| is_kept(element));
            for inner in elements {
                each_list(inner, is_kept);
            }
        }
        _ => {}
    }
}
