# npx @portkey-ai/gateway --port=PORT, then these lines. It has no config of its own: clients send one as a header.
omniglot score --url http://LISTEN --key KEY --upstream UPSTREAM --header 'x-portkey-config: {
  "retry": {"attempts": 0}, "request_timeout": 12000,
  "strategy": {"mode": "conditional", "default": "chat", "conditions": [
    {"query": {"params.model": {"$eq": "score-chat"}}, "then": "chat"},
    {"query": {"params.model": {"$eq": "score-messages"}}, "then": "messages"},
    {"query": {"params.model": {"$eq": "score-native"}}, "then": "native"},
    {"query": {"params.model": {"$eq": "score-responses"}}, "then": "responses"}]},
  "targets": [
    {"name": "chat", "provider": "openai", "api_key": "none", "custom_host": "http://UPSTREAM/v1"},
    {"name": "messages", "provider": "anthropic", "api_key": "none", "custom_host": "http://UPSTREAM/v1"},
    {"name": "native", "provider": "google", "api_key": "none", "custom_host": "http://UPSTREAM/v1beta"},
    {"name": "responses", "provider": "openai", "api_key": "none", "custom_host": "http://UPSTREAM/v1"}]}'
