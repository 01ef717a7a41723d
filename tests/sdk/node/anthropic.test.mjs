// The anthropic client: the messages format.

import Anthropic from '@anthropic-ai/sdk';

import { cover } from './matrix.mjs';
import * as things from './things.mjs';

const classes = {
  400: Anthropic.BadRequestError,
  401: Anthropic.AuthenticationError,
  403: Anthropic.PermissionDeniedError,
  404: Anthropic.NotFoundError,
  413: Anthropic.APIError,
  429: Anthropic.RateLimitError,
};

const body = (model, messages, more) => ({ model, max_tokens: 1024, messages, ...more });
const gather = (client, model, messages, more) =>
  client.messages.stream(body(model, messages, more)).finalMessage();
const text = (reply) => reply.content.map((block) => block.text ?? '').join('');
// The format tells a refusal by its ending, the words are text.
const outcome = (reply) => [reply.stop_reason, '', text(reply)];

cover({
  name: 'messages',
  connect: (apiKey) =>
    new Anthropic({ baseURL: things.gateway, apiKey, maxRetries: 0, timeout: 60_000 }),
  models: async (client, id) => {
    const listed = [];
    for await (const model of client.models.list()) listed.push(model.id);
    return { listed, got: (await client.models.retrieve(id)).id };
  },
  classOf: (status) => (status >= 500 ? Anthropic.InternalServerError : classes[status]),
  streamError: Anthropic.APIError,
  helperError: Anthropic.AnthropicError,
  kindOf: (error) => error.error.error.type,
  kinds: {
    401: 'authentication_error',
    403: 'permission_error',
    404: 'not_found_error',
    413: 'request_too_large',
  },
  user: (prompt, picture) => {
    const source = { type: 'base64', media_type: 'image/png', data: picture };
    const parts = [{ type: 'text', text: prompt }, { type: 'image', source }];
    return [{ role: 'user', content: picture ? parts : prompt }];
  },
  tools: (names) => ({
    tools: names.map((name) => ({ name, input_schema: things.parameters })),
  }),
  thoughtful: { thinking: { type: 'adaptive' } },
  shape: (schema) => ({ output_config: { format: { type: 'json_schema', schema } } }),
  ask: (client, model, messages, more) => client.messages.create(body(model, messages, more)),
  stream: (client, model, messages) =>
    client.messages.create(body(model, messages, { stream: true })),
  gather,
  delta: (event) => (event.type === 'content_block_delta' ? event.delta.text : ''),
  text,
  endings: { end: 'end_turn', length: 'max_tokens', filtered: 'refusal', refused: 'refusal' },
  outcome,
  streamOutcome: async (...asked) => outcome(await gather(...asked)),
  tally: ({ usage }) => [
    usage.input_tokens + usage.cache_read_input_tokens + (usage.cache_creation_input_tokens ?? 0),
    usage.cache_read_input_tokens,
    usage.output_tokens,
    usage.output_tokens_details.thinking_tokens,
  ],
  calls: (reply) =>
    reply.content
      .filter((block) => block.type === 'tool_use')
      .map((block) => ({ id: block.id, name: block.name, given: block.input })),
  thought: ({ content }) => ({
    said: content.map((block) => block.thinking ?? '').join(''),
    // A seal without a text is a block of its own.
    seal: content.map((block) => block.signature || block.data).find(Boolean),
  }),
  follow: (turns, reply, results, words) => {
    const calls = reply.content.filter((block) => block.type === 'tool_use');
    const content = results.map((result, index) => ({
      type: 'tool_result',
      tool_use_id: calls[index].id,
      content: result,
    }));
    if (words) content.push({ type: 'text', text: words });
    return [...turns, { role: 'assistant', content: reply.content }, { role: 'user', content }];
  },
  countTokens: async (client, model, prompt) => {
    const messages = [{ role: 'user', content: prompt }];
    return (await client.messages.countTokens({ model, messages })).input_tokens;
  },
  headers: async (client, model) => {
    const asked = client.messages.create(body(model, [{ role: 'user', content: 'hello' }]));
    return (await asked.withResponse()).response.headers;
  },
});
