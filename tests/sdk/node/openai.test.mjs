// Tests the openai client with the chat and the responses format.

import OpenAI from 'openai';

import { testClient } from './matrix.mjs';
import * as setup from './setup.mjs';

const classes = {
  400: OpenAI.BadRequestError,
  401: OpenAI.AuthenticationError,
  403: OpenAI.PermissionDeniedError,
  404: OpenAI.NotFoundError,
  413: OpenAI.APIError,
  429: OpenAI.RateLimitError,
};

const shared = {
  connect: (apiKey) =>
    new OpenAI({ baseURL: `${setup.gateway}/v1`, apiKey, maxRetries: 0, timeout: 60_000 }),
  models: async (client, id) => {
    const listed = [];
    for await (const model of client.models.list()) listed.push(model.id);
    return { listed, got: (await client.models.retrieve(id)).id };
  },
  errorClass: (status) => (status >= 500 ? OpenAI.InternalServerError : classes[status]),
  streamError: OpenAI.APIError,
  helperError: OpenAI.OpenAIError,
  errorType: (error) => error.code,
  errorTypes: {
    401: 'invalid_api_key',
    403: 'permission_denied',
    404: 'model_not_found',
    413: 'request_too_large',
  },
};

const dataUrl = (image) => `data:image/png;base64,${image}`;

testClient({
  ...shared,
  name: 'chat',
  user: (prompt, image) => {
    const imagePart = { type: 'image_url', image_url: { url: dataUrl(image) } };
    const content = image ? [{ type: 'text', text: prompt }, imagePart] : prompt;
    return [{ role: 'user', content }];
  },
  tools: (names) => ({
    tools: names.map((name) => ({
      type: 'function',
      function: { name, parameters: setup.parameters },
    })),
  }),
  reasoningOptions: { reasoning_effort: 'low' },
  structuredOutput: (schema) => ({
    response_format: { type: 'json_schema', json_schema: { name: 'shape', schema, strict: true } },
  }),
  send: (client, model, messages, more) =>
    client.chat.completions.create({ model, messages, ...more }),
  stream: (client, model, messages) =>
    client.chat.completions.create({ model, messages, stream: true }),
  collectStream: async (client, model, messages, more) => {
    const options = { stream_options: { include_usage: true } };
    const events = client.chat.completions.stream({ model, messages, ...options, ...more });
    // The helper keeps only the last delta of fields that it does not know.
    let reasoning = '';
    events.on('chunk', ({ choices }) => (reasoning += choices[0]?.delta.reasoning_content ?? ''));
    const response = await events.finalChatCompletion();
    if (reasoning) response.choices[0].message.reasoning_content = reasoning;
    return response;
  },
  delta: (event) => event.choices[0]?.delta.content,
  text: (response) => response.choices[0].message.content ?? '',
  finishReasons: { end: 'stop', length: 'length', filtered: 'content_filter', refused: 'stop' },
  outcome: ({ choices: [{ finish_reason: finishReason, message }] }) => [
    finishReason,
    message.refusal ?? '',
    message.content ?? '',
  ],
  // Reads the chunks: the SDK's helper raises an error for every finish reason but `stop`.
  streamOutcome: async (client, model, messages) => {
    const outcome = [null, '', ''];
    for await (const { choices } of await client.chat.completions.create({
      model,
      messages,
      stream: true,
    })) {
      if (!choices.length) continue;
      outcome[0] = choices[0].finish_reason ?? outcome[0];
      outcome[1] += choices[0].delta.refusal ?? '';
      outcome[2] += choices[0].delta.content ?? '';
    }
    return outcome;
  },
  usageDetails: ({ usage }) => [
    usage.prompt_tokens,
    usage.prompt_tokens_details.cached_tokens,
    usage.completion_tokens,
    usage.completion_tokens_details.reasoning_tokens,
  ],
  toolCalls: (response) =>
    response.choices[0].message.tool_calls.map(({ id, function: { name, arguments: args } }) => ({
      id,
      name,
      args: JSON.parse(args),
    })),
  // Both are extensions of the format.
  reasoning: ({ choices: [{ message }] }) => {
    const [detail] = message.reasoning_details ?? [];
    return {
      text: message.reasoning_content,
      signature: detail?.signature ?? detail?.data,
    };
  },
  appendToolResults: (turns, response, results, prompt) => {
    const { message } = response.choices[0];
    const toolResults = results.map((content, index) => ({
      role: 'tool',
      tool_call_id: message.tool_calls[index].id,
      content,
    }));
    return [...turns, message, ...toolResults, ...(prompt ? [{ role: 'user', content: prompt }] : [])];
  },
  headers: async (client, model) => {
    const messages = [{ role: 'user', content: 'hello' }];
    const request = client.chat.completions.create({ model, messages });
    return (await request.withResponse()).response.headers;
  },
});

const responsesOutcome = ({ status, incomplete_details: details, output, output_text: text }) => [
  status === 'incomplete' ? `incomplete: ${details.reason}` : status,
  output
    .at(-1)
    .content.map((part) => part.refusal ?? '')
    .join(''),
  text ?? output.flatMap((item) => item.content.map((part) => part.text ?? '')).join(''),
];

testClient({
  ...shared,
  name: 'responses',
  user: (prompt, image) => {
    const imagePart = { type: 'input_image', image_url: dataUrl(image), detail: 'auto' };
    const content = image ? [{ type: 'input_text', text: prompt }, imagePart] : prompt;
    return [{ role: 'user', content }];
  },
  tools: (names) => ({
    tools: names.map((name) => ({
      type: 'function',
      name,
      parameters: setup.parameters,
      strict: true,
    })),
  }),
  reasoningOptions: {
    reasoning: { effort: 'low', summary: 'auto' },
    include: ['reasoning.encrypted_content'],
  },
  structuredOutput: (schema) => ({
    text: { format: { type: 'json_schema', name: 'shape', schema, strict: true } },
  }),
  send: (client, model, input, more) =>
    client.responses.create({ model, input, store: false, ...more }),
  stream: (client, model, input) =>
    client.responses.create({ model, input, store: false, stream: true }),
  collectStream: (client, model, input, more) =>
    client.responses.stream({ model, input, store: false, ...more }).finalResponse(),
  delta: (event) => (event.type === 'response.output_text.delta' ? event.delta : ''),
  text: (response) => response.output_text,
  finishReasons: {
    end: 'completed',
    length: 'incomplete: max_output_tokens',
    filtered: 'incomplete: content_filter',
    refused: 'completed',
  },
  outcome: responsesOutcome,
  streamOutcome: async (client, model, input) => {
    let last;
    const events = await client.responses.create({ model, input, store: false, stream: true });
    for await (const event of events) last = event;
    return responsesOutcome(last.response);
  },
  usageDetails: ({ usage }) => [
    usage.input_tokens,
    usage.input_tokens_details.cached_tokens,
    usage.output_tokens,
    usage.output_tokens_details.reasoning_tokens,
  ],
  toolCalls: (response) =>
    response.output
      .filter((item) => item.type === 'function_call')
      .map((item) => ({ id: item.call_id, name: item.name, args: JSON.parse(item.arguments) })),
  reasoning: (response) => {
    const items = response.output.filter((item) => item.type === 'reasoning');
    return {
      text: items.flatMap((item) => item.summary.map((part) => part.text)).join(''),
      signature: items.map((item) => item.encrypted_content).find(Boolean),
    };
  },
  appendToolResults: (turns, response, results, prompt) => {
    const calls = response.output.filter((item) => item.type === 'function_call');
    const toolResults = results.map((output, index) => ({
      type: 'function_call_output',
      call_id: calls[index].call_id,
      output,
    }));
    // The SDK's helper adds this field, which is not part of the format.
    const items = response.output.map(({ parsed_arguments: _, ...item }) => item);
    return [...turns, ...items, ...toolResults, ...(prompt ? [{ role: 'user', content: prompt }] : [])];
  },
  countTokens: async (client, model, input) =>
    (await client.responses.inputTokens.count({ model, input })).input_tokens,
  headers: async (client, model) => {
    const request = client.responses.create({ model, input: 'hello', store: false });
    return (await request.withResponse()).response.headers;
  },
});
