# Written from its documentation, and not run yet: docs/fidelity.md says why.
# new-api keeps its channels in a database. Start it with RETRY_TIMES=0 on PORT, sign in as root, make a token KEY, set
# ADMIN to the access token of root, run these lines, and then:
# omniglot score --url http://LISTEN --key KEY --upstream UPSTREAM
channel() {
  curl -s "http://LISTEN/api/channel/" -H "authorization: Bearer $ADMIN" -H "New-Api-User: 1" \
    -H "content-type: application/json" \
    -d '{"mode":"single","channel":{"name":"'"$1"'","type":'"$2"',"key":"none","base_url":"http://UPSTREAM","models":"'"$1"'","group":"default"}}'
}
channel score-chat 1        # OpenAI
channel score-messages 14   # Anthropic
channel score-native 24     # Gemini
channel score-responses 1   # OpenAI; its chat clients are served with chat
