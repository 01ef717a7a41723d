# Run these lines in an empty folder. Streams of 1.15.2 fail with the newest @hono/node-server that npm chooses for it
# (https://github.com/Portkey-AI/gateway/issues/1389), so this has the version that its own repository has.
# It keeps no config: clients send one in a header, and it chooses the upstream by the model of the body.
echo '{"dependencies": {"@portkey-ai/gateway": "1.15.2"}, "overrides": {"@hono/node-server": "1.13.5"}}' > package.json
npm install
node node_modules/@portkey-ai/gateway/build/start-server.js --port=PORT --headless &
GATEWAY=$!
sleep 5
omniglot score "$@" --url http://LISTEN --key KEY --upstream UPSTREAM --header 'x-portkey-config: {
  "retry": {"attempts": 0}, "request_timeout": 12000,
  "strategy": {"mode": "conditional", "default": "chat", "conditions": [
    {"query": {"params.model": {"$eq": "score-chat"}}, "then": "chat"},
    {"query": {"params.model": {"$eq": "score-messages"}}, "then": "messages"},
    {"query": {"params.model": {"$eq": "score-native"}}, "then": "native"},
    {"query": {"params.model": {"$eq": "score-responses"}}, "then": "responses"}]},
  "targets": [
    {"name": "chat", "provider": "openai", "api_key": "none", "custom_host": "http://UPSTREAM/v1"},
    {"name": "messages", "provider": "anthropic", "api_key": "none", "custom_host": "http://UPSTREAM/v1"},
    {"name": "native", "provider": "google", "api_key": "none", "custom_host": "http://UPSTREAM"},
    {"name": "responses", "provider": "openai", "api_key": "none", "custom_host": "http://UPSTREAM/v1"}]}'
kill $GATEWAY
