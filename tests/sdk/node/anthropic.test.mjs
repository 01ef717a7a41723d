// Tests the anthropic client with the messages format.

import Anthropic from '@anthropic-ai/sdk';

import { testClient } from './matrix.mjs';
import * as setup from './setup.mjs';

const classes = {
  400: Anthropic.BadRequestError,
  401: Anthropic.AuthenticationError,
  403: Anthropic.PermissionDeniedError,
  404: Anthropic.NotFoundError,
  413: Anthropic.APIError,
  429: Anthropic.RateLimitError,
};

const body = (model, messages, more) => ({ model, max_tokens: 1024, messages, ...more });
const collectStream = (client, model, messages, more) =>
  client.messages.stream(body(model, messages, more)).finalMessage();
const text = (response) => response.content.map((block) => block.text ?? '').join('');
// The format has a finish reason for a refusal; its content is text.
const outcome = (response) => [response.stop_reason, '', text(response)];

testClient({
  name: 'messages',
  connect: (apiKey) =>
    new Anthropic({ baseURL: setup.gateway, apiKey, maxRetries: 0, timeout: 60_000 }),
  models: async (client, id) => {
    const listed = [];
    for await (const model of client.models.list()) listed.push(model.id);
    return { listed, got: (await client.models.retrieve(id)).id };
  },
  errorClass: (status) => (status >= 500 ? Anthropic.InternalServerError : classes[status]),
  streamError: Anthropic.APIError,
  helperError: Anthropic.AnthropicError,
  errorType: (error) => error.error.error.type,
  errorTypes: {
    401: 'authentication_error',
    403: 'permission_error',
    404: 'not_found_error',
    413: 'request_too_large',
  },
  user: (prompt, image) => {
    const source = { type: 'base64', media_type: 'image/png', data: image };
    const parts = [{ type: 'text', text: prompt }, { type: 'image', source }];
    return [{ role: 'user', content: image ? parts : prompt }];
  },
  tools: (names) => ({
    tools: names.map((name) => ({ name, input_schema: setup.parameters })),
  }),
  reasoningOptions: { thinking: { type: 'adaptive' } },
  structuredOutput: (schema) => ({ output_config: { format: { type: 'json_schema', schema } } }),
  send: (client, model, messages, more) => client.messages.create(body(model, messages, more)),
  stream: (client, model, messages) =>
    client.messages.create(body(model, messages, { stream: true })),
  collectStream,
  delta: (event) => (event.type === 'content_block_delta' ? event.delta.text : ''),
  text,
  finishReasons: { end: 'end_turn', length: 'max_tokens', filtered: 'refusal', refused: 'refusal' },
  outcome,
  streamOutcome: async (...request) => outcome(await collectStream(...request)),
  usageDetails: ({ usage }) => [
    usage.input_tokens + usage.cache_read_input_tokens + (usage.cache_creation_input_tokens ?? 0),
    usage.cache_read_input_tokens,
    usage.output_tokens,
    usage.output_tokens_details.thinking_tokens,
  ],
  toolCalls: (response) =>
    response.content
      .filter((block) => block.type === 'tool_use')
      .map((block) => ({ id: block.id, name: block.name, args: block.input })),
  reasoning: ({ content }) => ({
    text: content.map((block) => block.thinking ?? '').join(''),
    // A signature without text is a block of its own.
    signature: content.map((block) => block.signature || block.data).find(Boolean),
  }),
  appendToolResults: (turns, response, results, prompt) => {
    const calls = response.content.filter((block) => block.type === 'tool_use');
    const content = results.map((result, index) => ({
      type: 'tool_result',
      tool_use_id: calls[index].id,
      content: result,
    }));
    if (prompt) content.push({ type: 'text', text: prompt });
    return [...turns, { role: 'assistant', content: response.content }, { role: 'user', content }];
  },
  countTokens: async (client, model, prompt) => {
    const messages = [{ role: 'user', content: prompt }];
    return (await client.messages.countTokens({ model, messages })).input_tokens;
  },
  headers: async (client, model) => {
    const request = client.messages.create(body(model, [{ role: 'user', content: 'hello' }]));
    return (await request.withResponse()).response.headers;
  },
});
